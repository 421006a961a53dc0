"""The driver of kafka-python; README.md of the folder above has the commands."""

import struct
import sys
import threading

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor

HEAD = struct.Struct(">iqq")
LENGTH = struct.Struct(">i")
POLL_MS = 200


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{size - len(data)} bytes missing")
    return data


def read_bytes(stream):
    (length,) = LENGTH.unpack(read_exactly(stream, 4))
    return None if length < 0 else read_exactly(stream, length)


def read_records(stream):
    while head := stream.read(HEAD.size):
        partition, _, timestamp = HEAD.unpack(head)
        key, value = read_bytes(stream), read_bytes(stream)
        (count,) = LENGTH.unpack(read_exactly(stream, 4))
        headers = [(read_bytes(stream).decode(), read_bytes(stream)) for _ in range(count)]
        yield partition, timestamp, key, value, headers


def packed(data):
    return LENGTH.pack(-1) if data is None else LENGTH.pack(len(data)) + data


def write_record(stream, record):
    parts = [HEAD.pack(record.partition, record.offset, record.timestamp), packed(record.key), packed(record.value)]
    parts.append(LENGTH.pack(len(record.headers)))
    for name, value in record.headers:
        parts += [packed(name.encode()), packed(value)]
    stream.write(b"".join(parts))


def create(settings, *topics):
    wanted = {name: {"num_partitions": int(count), "replication_factor": 1} for name, count in (t.split(":") for t in topics)}
    admin = KafkaAdminClient(**settings)
    admin.create_topics(wanted)
    admin.close()
    for topic in wanted:
        say(f"created {topic}")


def produce(settings, topic):
    settings.setdefault("max_request_size", 8_000_000)
    producer = KafkaProducer(**settings)
    failed = []

    def acknowledged(index):
        return lambda metadata: say(f"ack {index} {metadata.partition} {metadata.offset}")

    def refused(index):
        return lambda failure: failed.append(index) or say(f"fail {index} {failure!r}")

    for index, (partition, timestamp, key, value, headers) in enumerate(read_records(sys.stdin.buffer)):
        where = None if partition < 0 else partition
        future = producer.send(topic, value, key, headers, where, timestamp)
        future.add_callback(acknowledged(index)).add_errback(refused(index))
    producer.flush()
    producer.close()


def consumer_settings(settings):
    return {"auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}


def consume(settings, topic, partitions):
    everything = [TopicPartition(topic, partition) for partition in range(int(partitions))]
    ends = {}

    def read_ends():
        for line in sys.stdin:
            _, partition, offset = line.split()
            ends[TopicPartition(topic, int(partition))] = int(offset)

    threading.Thread(target=read_ends, daemon=True).start()
    consumer = KafkaConsumer(**consumer_settings(settings))
    consumer.assign(everything)
    consumer.seek_to_beginning(*everything)

    def reached(partition):
        if partition not in ends:
            return False
        if ends[partition] < 0:
            ends[partition] = consumer.end_offsets([partition])[partition]
        return consumer.position(partition) >= ends[partition]

    while not all(reached(partition) for partition in everything):
        for records in consumer.poll(POLL_MS).values():
            for record in records:
                write_record(sys.stdout.buffer, record)
        sys.stdout.buffer.flush()
    consumer.close()


class Reporter(ConsumerRebalanceListener):
    """Prints the partitions of this member whenever they change."""

    def __init__(self):
        self.mine = set()

    def report(self):
        say("assigned " + ",".join(map(str, sorted(self.mine))))

    def on_partitions_revoked(self, revoked):
        self.mine -= {partition.partition for partition in revoked}
        self.report()

    def on_partitions_assigned(self, assigned):
        self.mine |= {partition.partition for partition in assigned}
        self.report()


def group(settings, topic, group_id):
    closing = threading.Event()

    def wait_for_close():
        for line in sys.stdin:
            if line.strip() == "close":
                break
        closing.set()

    threading.Thread(target=wait_for_close, daemon=True).start()
    strategy = settings.pop("partition_assignment_strategy", None)
    if strategy == "range":
        settings["partition_assignment_strategy"] = (RangePartitionAssignor,)
    consumer = KafkaConsumer(**consumer_settings(settings), group_id=group_id)
    consumer.subscribe([topic], listener=Reporter())
    while not closing.is_set():
        polled = consumer.poll(POLL_MS)
        for records in polled.values():
            for record in records:
                say(f"record {record.partition} {record.offset}")
        if polled:
            consumer.commit()
    consumer.close(autocommit=False)


def typed(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return None if text == "none" else text


def main():
    command, bootstrap, *arguments = sys.argv[1:]
    words = [argument for argument in arguments if "=" not in argument]
    settings = {}
    for name, value in (argument.split("=", 1) for argument in arguments if "=" in argument):
        settings[name.replace(".", "_")] = typed(value)
    settings["bootstrap_servers"] = bootstrap
    {"create": create, "produce": produce, "consume": consume, "group": group}[command](settings, *words)


main()
