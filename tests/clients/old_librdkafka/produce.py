"""Produces some records with librdkafka 2.3: produce.py BOOTSTRAP TOPIC CODEC."""

import sys

from confluent_kafka import Producer, libversion

bootstrap, topic, codec = sys.argv[1:]
assert libversion()[0] == "2.3.0", libversion()
producer = Producer({"bootstrap.servers": bootstrap, "compression.codec": codec, "linger.ms": 50})
failures = []
for number in range(500):
    producer.produce(topic, value=b"the same again " * 20, on_delivery=lambda error, _: error and failures.append(error))
left = producer.flush(60)
if failures or left:
    sys.exit(f"{left} not sent, {failures[:1]}")
