import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The driver of Apache's Java client; README.md of the folder above has the commands. */
public final class Driver {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final PrintStream OUT = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false);

    public static void main(String[] arguments) throws Exception {
        List<String> words = new ArrayList<>();
        Properties settings = new Properties();
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            int equals = argument.indexOf('=');
            if (equals < 0) words.add(argument);
            else settings.put(argument.substring(0, equals), argument.substring(equals + 1));
        }
        settings.put("bootstrap.servers", arguments[1]);
        switch (arguments[0]) {
            case "create" -> create(settings, words);
            case "produce" -> produce(settings, words.get(0));
            case "consume" -> consume(settings, words.get(0), Integer.parseInt(words.get(1)));
            case "group" -> group(settings, words.get(0), words.get(1));
            default -> throw new IllegalArgumentException("no command " + arguments[0]);
        }
        OUT.flush();
    }

    private static void create(Properties settings, List<String> topics) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            List<NewTopic> wanted = new ArrayList<>();
            for (String topic : topics) {
                String[] parts = topic.split(":");
                wanted.add(new NewTopic(parts[0], Integer.parseInt(parts[1]), (short) 1));
            }
            admin.createTopics(wanted).all().get();
            for (NewTopic topic : wanted) OUT.println("created " + topic.name());
        }
    }

    private static void produce(Properties settings, String topic) throws IOException {
        settings.putIfAbsent("max.request.size", "8000000");
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long index = 0; ; index++) {
                ProducerRecord<byte[], byte[]> record = readRecord(in, topic);
                if (record == null) break;
                long number = index;
                producer.send(record, (metadata, failure) -> {
                    if (failure != null) OUT.println("fail " + number + " " + failure);
                    else OUT.println("ack " + number + " " + metadata.partition() + " "
                        + (metadata.hasOffset() ? metadata.offset() : -1));
                    OUT.flush();
                });
            }
            producer.flush();
        }
    }

    private static ProducerRecord<byte[], byte[]> readRecord(DataInputStream in, String topic) throws IOException {
        int partition;
        try {
            partition = in.readInt();
        } catch (EOFException end) {
            return null;
        }
        in.readLong();
        long timestamp = in.readLong();
        byte[] key = readBytes(in);
        byte[] value = readBytes(in);
        List<Header> headers = new ArrayList<>();
        for (int count = in.readInt(); count > 0; count--) {
            headers.add(new RecordHeader(new String(readBytes(in), "UTF-8"), readBytes(in)));
        }
        return new ProducerRecord<>(topic, partition < 0 ? null : partition, timestamp, key, value, headers);
    }

    private static byte[] readBytes(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0) return null;
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    private static void writeRecord(DataOutputStream out, ConsumerRecord<byte[], byte[]> record) throws IOException {
        out.writeInt(record.partition());
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        writeBytes(out, record.key());
        writeBytes(out, record.value());
        out.writeInt(record.headers().toArray().length);
        for (Header header : record.headers()) {
            writeBytes(out, header.key().getBytes("UTF-8"));
            writeBytes(out, header.value());
        }
    }

    private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) out.write(bytes);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Properties settings) {
        settings.putIfAbsent("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void consume(Properties settings, String topic, int partitions) throws IOException {
        Map<Integer, Long> ends = new ConcurrentHashMap<>();
        Thread reader = new Thread(() -> {
            for (String line : (Iterable<String>) lines()::iterator) {
                String[] words = line.split(" ");
                ends.put(Integer.parseInt(words[1]), Long.parseLong(words[2]));
            }
        });
        reader.setDaemon(true);
        reader.start();
        List<TopicPartition> all = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) all.add(new TopicPartition(topic, partition));
        DataOutputStream out = new DataOutputStream(OUT);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            while (!reachedAll(consumer, all, ends)) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) writeRecord(out, record);
                out.flush();
            }
        }
    }

    private static boolean reachedAll(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> all, Map<Integer, Long> ends) {
        for (TopicPartition partition : all) {
            Long end = ends.get(partition.partition());
            if (end == null) return false;
            if (end < 0) {
                end = consumer.endOffsets(List.of(partition)).get(partition);
                ends.put(partition.partition(), end);
            }
            if (consumer.position(partition) < end) return false;
        }
        return true;
    }

    private static void group(Properties settings, String topic, String group) throws InterruptedException {
        settings.put("group.id", group);
        Thread reader = new Thread(() -> lines().takeWhile(line -> !line.equals("close")).count());
        reader.setDaemon(true);
        reader.start();
        TreeSet<Integer> mine = new TreeSet<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    partitions.forEach(partition -> mine.remove(partition.partition()));
                    report(mine);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    partitions.forEach(partition -> mine.add(partition.partition()));
                    report(mine);
                }
            });
            while (reader.isAlive()) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    OUT.println("record " + record.partition() + " " + record.offset());
                }
                OUT.flush();
                if (!records.isEmpty()) consumer.commitSync();
            }
        }
    }

    private static void report(TreeSet<Integer> partitions) {
        OUT.println("assigned " + partitions.stream().map(String::valueOf).collect(Collectors.joining(",")));
        OUT.flush();
    }

    private static java.util.stream.Stream<String> lines() {
        return new BufferedReader(new InputStreamReader(System.in)).lines();
    }
}
