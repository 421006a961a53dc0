#!/usr/bin/env python3
"""What a well-behaved client feels while others misbehave: its round trips are timed alone, and beside each kind of trouble.

    perf/hostile.py PORT [HTTP_PORT] [--rounds 5] [--seconds 8] [--only WORDS]

The broker must take clients without a password. The victim asks 200 times a second, in turn for versions and to write a small
batch, each over its own connection. Attackers run in processes of their own. With an HTTP port the broker's resident memory is
told, too.

Quiet and hostile seconds alternate, since a shared machine has delays of its own that move: a round is one of each, its figure
the ratio of both 99th percentiles. The verdict on an attack is the median of its rounds, which must be below twice; the code is 1
if one is not. The machine's load stands beside it, as ratios from a busy machine say little.
"""
import argparse
import multiprocessing
import os
import resource
import socket
import statistics
import struct
import sys
import time
import urllib.request
import zlib

HALF_OPEN = 10_000
RATE = 200
LIMIT = 2.0


def frame(key, version, body, correlation=1, client=b"victim"):
    header = struct.pack(">hhih", key, version, correlation, len(client)) + client
    return struct.pack(">i", len(header) + len(body)) + header + body


def call(connection, request):
    connection.sendall(request)
    return receive(connection)


def receive(connection):
    head = exactly(connection, 4)
    return exactly(connection, struct.unpack(">i", head)[0])


def exactly(connection, count):
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise ConnectionError("closed")
        data += chunk
    return data


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def string(text):
    return struct.pack(">h", len(text)) + text


def create(connection, topic):
    body = struct.pack(">i", 1) + string(topic) + struct.pack(">ihii", 1, 1, 0, 0) + struct.pack(">ib", 10_000, 0)
    call(connection, frame(19, 2, body))
    time.sleep(0.5)


CRC32C = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    CRC32C.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(number):
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def batch(records, codec=0, count=1, spoil=False):
    body = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + records
    crc = crc32c(body) ^ (1 if spoil else 0)
    rest = struct.pack(">ibI", -1, 2, crc) + body
    return struct.pack(">qi", 0, len(rest)) + rest


def record(value):
    fields = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(fields)) + fields


def produce(topic, records):
    partition = struct.pack(">ii", 0, len(records)) + records
    body = struct.pack(">hhi", -1, -1, 10_000) + struct.pack(">i", 1) + string(topic) + struct.pack(">i", 1) + partition
    return frame(0, 3, body)


def bomb():
    """A gzip batch of a few kilobytes that unpacks to 64 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    return batch(packed, codec=1)


def silent(port, _stop):
    held = [connect(port) for _ in range(HALF_OPEN // 2)]
    for _ in range(HALF_OPEN // 2):
        connection = connect(port)
        connection.sendall(struct.pack(">i", 1000) + b"\0\3")
        held.append(connection)
    READY.set()
    _stop.wait()


def loris(port, stop):
    request = frame(3, 1, struct.pack(">i", -1)) * 10
    held = [connect(port) for _ in range(1000)]
    READY.set()
    at = 0
    while not stop.is_set():
        for connection in held:
            connection.sendall(request[at % len(request):][:1])
        at += 1
        stop.wait(1)


def again_and_again(one):
    def attack(port, stop):
        READY.set()
        while not stop.is_set():
            for _ in range(10):
                try:
                    one(port)
                except OSError:
                    pass
            stop.wait(0.05)
    return attack


def junk(data):
    def one(port):
        with connect(port) as connection:
            connection.sendall(data)
            connection.recv(1)
    return again_and_again(one)


def writes(records):
    def attack(port, stop):
        connection = connect(port)
        READY.set()
        while not stop.is_set():
            try:
                call(connection, produce(b"attacked", records))
            except OSError:
                connection = connect(port)
            stop.wait(0.01)
    return attack


def claims(port, stop):
    held = []
    READY.set()
    while not stop.is_set():
        connection = connect(port)
        connection.sendall(struct.pack(">i", 100_000_000) + bytes(100_000))
        held.append(connection)
        stop.wait(0.02)


def attacks():
    return {
        "10,000 half-open connections": silent,
        "1,000 slow-loris connections": loris,
        "lengths of 2 GiB": junk(struct.pack(">i", 2**31 - 1) + b"x" * 100),
        "negative counts": junk(frame(3, 1, struct.pack(">i", -2))),
        "unknown API": junk(frame(999, 0, b"")),
        "unknown version": junk(frame(3, 99, b"")),
        "HTTP, TLS and noise": junk(b"GET / HTTP/1.1\r\n\r\n"),
        "claims of 100 MB, a tenth sent": claims,
        "wrong checksums": writes(batch(record(b"x" * 50_000), spoil=True)),
        "gzip bombs of 64 MiB": writes(bomb()),
    }


def quantile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def measure(port, seconds):
    asking, writing = connect(port), connect(port)
    ask, write = frame(18, 0, b""), produce(b"victim", batch(record(b"x" * 200)))
    times = {"versions": [], "produce": []}
    start = time.perf_counter()
    for number in range(seconds * RATE):
        due = start + number / RATE
        time.sleep(max(0, due - time.perf_counter()))
        kind = "versions" if number % 2 else "produce"
        before = time.perf_counter()
        call(*((asking, ask) if number % 2 else (writing, write)))
        times[kind].append((time.perf_counter() - before) * 1000)
    return times


def resident(http):
    if not http:
        return "?"
    text = urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics").read().decode()
    line = next(it for it in text.splitlines() if it.startswith("ringmain_process_resident_bytes"))
    return f"{float(line.split()[-1]) / (1 << 20):.0f}"


def beside(attack, port, seconds, http):
    """What the victim measures while an attack goes on, and the broker's memory at its end."""
    READY.clear()
    stop = multiprocessing.Event()
    attacker = multiprocessing.Process(target=attack, args=(port, stop))
    attacker.start()
    READY.wait()
    times = measure(port, seconds)
    memory = resident(http)
    stop.set()
    attacker.join()
    return times, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("http", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--only", default="", help="attacks whose names have these words")
    options = parser.parse_args()
    port, seconds, http = options.port, options.seconds, options.http
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with connect(port) as connection:
        create(connection, b"victim")
        create(connection, b"attacked")
    measure(port, seconds)
    print("| beside | versions p99, alone and beside | ratio of each round | produce p99, alone and beside | ratio of each round | medians | MiB | load | |")
    print("|---|---|---|---|---|---|---|---|---|")
    failed = []
    for name, attack in attacks().items():
        if options.only not in name:
            continue
        alone, hostile, memory = {"versions": [], "produce": []}, {"versions": [], "produce": []}, "?"
        for _ in range(options.rounds):
            quiet = measure(port, seconds)
            times, memory = beside(attack, port, seconds, http)
            for kind, rounds in alone.items():
                rounds.append(quantile(quiet[kind], 0.99))
                hostile[kind].append(quantile(times[kind], 0.99))
        cells, medians = [], []
        for kind, rounds in alone.items():
            ratios = [there / here for here, there in zip(rounds, hostile[kind])]
            medians.append(statistics.median(ratios))
            cells.append(f"{statistics.median(rounds):.2f}, {statistics.median(hostile[kind]):.2f} ms")
            cells.append(" ".join(f"{ratio:.2f}" for ratio in ratios))
        good = max(medians) < LIMIT
        if not good:
            failed.append(name)
        verdict = "within twice" if good else "**above twice**"
        shown = ", ".join(f"{ratio:.2f}" for ratio in medians)
        print(f"| {name} | {' | '.join(cells)} | {shown} | {memory} | {os.getloadavg()[0]:.1f} | {verdict} |", flush=True)
    print(f"\nVerdict: {'above twice beside ' + ', '.join(failed) if failed else 'within twice beside every one'}; median of {options.rounds} rounds of {seconds} s")
    sys.exit(1 if failed else 0)


READY = multiprocessing.Event()

if __name__ == "__main__":
    main()
