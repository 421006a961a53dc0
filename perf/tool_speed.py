#!/usr/bin/env python3
"""How fast the perf tests of the command line are, beside Apache Kafka's own, against one broker.

    perf/tool_speed.py HOST:PORT --ours target/release/ringmain --apache 'COMMAND' [--broker-pid PID] [--only WORDS] [--rounds 1]

COMMAND is what stands before the name of a tool of Apache's without `kafka-` and `.sh`. Both run in turn with the same flags, each
on a topic of its own with three partitions; a tool that reads gets what its like has written. Processor time and largest resident
memory are those of the tool's process and its children, as the system counts them; the broker's are told with its process id.
"""
import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

CASES = [  # name, records, bytes of each, acks
    ("1 KiB, acks=1", 1_000_000, 1024, "1"),
    ("1 KiB, acks=all", 1_000_000, 1024, "all"),
    ("100 bytes, acks=1", 5_000_000, 100, "1"),
    ("100 bytes, acks=all", 5_000_000, 100, "all"),
]
STARTS = 15


def run(command):
    """Wall seconds, processor seconds in the program and in the kernel, MiB, and what it printed."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        out.seek(0)
        text = out.read().decode()
    if process.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {process.returncode}:\n{text}")
    return took, (used.ru_utime, used.ru_stime), used.ru_maxrss / 1024, text


def processor_seconds(pid):
    if pid is None:
        return 0.0
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor(used):
    return f"{used[0]:.2f} + {used[1]:.2f}"


def written(text):
    """Records/s, MB/s, mean, 99th and 99.9th percentile of the last line of producer-perf-test."""
    line = [line for line in text.splitlines() if "99.9th" in line][-1]
    numbers = re.search(r"([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg.* (\d+) ms 99th, (\d+) ms 99.9th", line)
    return [float(number) for number in numbers.groups()]


def read(text):
    """Records/s and MB/s of the time in which it fetched, from the summary of consumer-perf-test."""
    cells = [cell.strip() for cell in text.strip().splitlines()[-1].split(",")]
    return float(cells[9]), float(cells[8])


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def measure(arguments, round_number):
    bootstrap = ["--bootstrap-server", arguments.broker]
    tools = {"ours": shlex.split(arguments.ours), "Apache's": shlex.split(arguments.apache)}
    for name, records, size, acks in CASES:
        if arguments.only not in name:
            continue
        topics = {}
        for who, tool in tools.items():
            topics[who] = f"speed-{os.getpid()}-{round_number}-{size}-{acks}-{len(topics)}"
            create = ["topics", "--create", "--topic", topics[who], "--partitions", "3"]
            run(tools["ours"] + create + bootstrap)
            flags = ["--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
            flags += ["--command-property", f"acks={acks}"]
            before = processor_seconds(arguments.broker_pid)
            took, used, memory, text = run(tool + ["producer-perf-test", "--topic", topics[who]] + flags + bootstrap)
            broker = processor_seconds(arguments.broker_pid) - before
            rate, megabytes, mean, p99, _ = written(text)
            row("write", name, who, f"{rate:,.0f}", f"{megabytes:.1f}", f"{took:.2f}", processor(used),
                f"{memory:.0f}", f"{mean:.1f} / {p99:.0f}", f"{broker:.2f}")
        # The first to read a topic waits for the disk as well.
        for what, (who, tool) in itertools.product(("read", "read again"), tools.items()):
            flags = ["--topic", topics[who], "--num-records", str(records)]
            before = processor_seconds(arguments.broker_pid)
            took, used, memory, text = run(tool + ["consumer-perf-test"] + flags + bootstrap)
            broker = processor_seconds(arguments.broker_pid) - before
            rate, megabytes = read(text)
            row(what, name, who, f"{rate:,.0f}", f"{megabytes:.1f}", f"{took:.2f}", processor(used),
                f"{memory:.0f}", "", f"{broker:.2f}")
        for topic in topics.values():
            run(tools["ours"] + ["topics", "--delete", "--topic", topic] + bootstrap)


def starts(arguments):
    for who, tool, count in (("ours", arguments.ours, STARTS), ("Apache's", arguments.apache, 3)):
        for name in (["topics", "--list"], ["get-offsets"], ["consumer-groups", "--list"]):
            command = shlex.split(tool) + name + ["--bootstrap-server", arguments.broker]
            figures = [run(command) for _ in range(count)]
            walls = sorted(1000 * took for took, *_ in figures)
            used = sum(sum(used) for _, used, *_ in figures) / count
            row("start", " ".join(name), who, f"{walls[0]:.1f}", f"{walls[len(walls) // 2]:.1f}", f"{walls[-1]:.1f}",
                f"{1000 * used:.1f}", f"{max(memory for *_, memory, _ in figures):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("broker")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--apache", required=True)
    parser.add_argument("--broker-pid", type=int)
    parser.add_argument("--only", default="", help="only cases whose name has these words")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--starts", action="store_true", help="only how long small commands take: least, median, most, ms")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    if arguments.starts:
        row("", "command", "whose", "least ms", "median ms", "most ms", "CPU ms", "MiB")
        return starts(arguments)
    row("", "records", "whose", "records/s", "MB/s", "wall s", "CPU s, user + sys", "MiB", "mean / p99 ms", "broker CPU s")
    for round_number in range(arguments.rounds):
        measure(arguments, round_number)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
