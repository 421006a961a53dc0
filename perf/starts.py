#!/usr/bin/env python3
"""How long a broker takes from its start to its first answer, and what it takes while nobody asks: on an empty directory, with many
partitions after a clean stop, and with as many after kill -9, the page cache dropped each time (as root).

    perf/starts.py --serve 'target/release/ringmain serve --override log.dirs={data} --override listeners={listeners}
        --override controller.quorum.voters=1@{controller}' --tools target/release/ringmain [--partitions 10000] [--rounds 3]

The command of --serve runs a broker in the foreground; what stands in braces is filled in. Before each kill every topic is written to.
"""
import argparse
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

PARTITIONS_OF_A_TOPIC = 1000
RECORDS_OF_A_TOPIC = 50_000
IDLE_SECONDS = 10
LONGEST_SECONDS = 120
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    """Whether the broker answers an ApiVersions request."""
    body = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=LONGEST_SECONDS) as stream:
            stream.sendall(struct.pack(">i", len(body)) + body)
            return len(stream.recv(8)) > 0
    except (ConnectionRefusedError, ConnectionResetError):
        return False


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as control:
        control.write("3")


class Broker:
    def __init__(self, command, folder):
        self.port, controller = free_port(), free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}"
        filled = command.format(data=f"{folder}/data", listeners=listeners, controller=f"127.0.0.1:{controller}")
        self.log = open(f"{folder}/log", "ab")
        began = time.monotonic()
        self.process = subprocess.Popen(shlex.split(filled), stdout=self.log, stderr=self.log)
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() - began > LONGEST_SECONDS:
                sys.exit(f"the broker does not start: see {folder}/log")
            time.sleep(0.001)
        self.ready_ms = (time.monotonic() - began) * 1000

    def end(self, how):
        began = time.monotonic()
        self.process.send_signal(how)
        self.process.wait()
        self.log.close()
        return (time.monotonic() - began) * 1000

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def idle(self):
        """Processor time of a second in which nobody asks, in per cent of a core, and MiB."""
        before = self.processor_seconds()
        time.sleep(IDLE_SECONDS)
        return (self.processor_seconds() - before) * 100 / IDLE_SECONDS, self.resident_mib()


def run(tools, arguments, port):
    command = shlex.split(tools) + arguments + ["--bootstrap-server", f"127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")


def write_all(tools, topics, port):
    for topic in topics:
        flags = ["--num-records", str(RECORDS_OF_A_TOPIC), "--record-size", "100", "--throughput", "-1"]
        settings = ["--producer-props", "batch.size=100", "linger.ms=0", f"bootstrap.servers=127.0.0.1:{port}"]
        command = shlex.split(tools) + ["producer-perf-test", "--topic", topic, *flags, *settings]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")


def tell(what, broker):
    share, resident = broker.idle()
    print(f"{what:<44}{broker.ready_ms:>9.0f} ms to ready{share:>8.2f} % of a core idle{resident:>8.0f} MiB", flush=True)


def measure(arguments, folder):
    broker = Broker(arguments.serve, folder)
    broker.end(signal.SIGTERM)
    shutil.rmtree(f"{folder}/data")
    for _ in range(arguments.rounds):
        drop_caches()
        broker = Broker(arguments.serve, folder)
        tell("empty", broker)
        broker.end(signal.SIGTERM)
        shutil.rmtree(f"{folder}/data")
    broker = Broker(arguments.serve, folder)
    topics = [f"starts-{number}" for number in range(arguments.partitions // PARTITIONS_OF_A_TOPIC)]
    for topic in topics:
        run(arguments.tools, ["topics", "--create", "--topic", topic, "--partitions", str(PARTITIONS_OF_A_TOPIC)], broker.port)
    write_all(arguments.tools, topics, broker.port)
    for how, name in ((signal.SIGTERM, "a clean stop"), (signal.SIGKILL, "kill -9")):
        for _ in range(arguments.rounds):
            if how == signal.SIGKILL:
                write_all(arguments.tools, topics, broker.port)
            took = broker.end(how)
            drop_caches()
            broker = Broker(arguments.serve, folder)
            tell(f"{arguments.partitions} partitions after {name} ({took:.0f} ms)", broker)
    broker.end(signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", required=True)
    parser.add_argument("--tools", required=True, help="what stands before `topics` and `producer-perf-test`")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the directory is made; its disk is what is measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measure(arguments, folder)


if __name__ == "__main__":
    main()
