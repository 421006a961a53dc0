import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What a client does to the broker at each station of a round trip. Every round writes records that follow from topic,
 * partition and offset alone, so that any later reader can tell whether all of them are there, whole and in place.
 */
final class RoundTrip implements AutoCloseable {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final int PARTITIONS = 2;
    /** Records that a round adds to each partition. */
    private static final int ROUND = 60;
    private static final String LARGE = "large";
    private static final int LARGE_ROUND = 300;
    private static final String TRANSACTIONS = "transactions";
    private static final long START = 1_700_000_000_000L;
    private static final long HOUR = 3_600_000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long PATIENCE_MS = 60_000;

    private final String bootstrap;
    private final Admin admin;

    RoundTrip(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
    }

    @Override
    public void close() {
        admin.close();
    }

    private Properties settings(String... pairs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("reconnect.backoff.max.ms", "200");
        for (String pair : pairs) settings.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        return settings;
    }

    void run(String command, List<String> words) throws Exception {
        switch (command) {
            case "create" -> create();
            case "write" -> write(Integer.parseInt(words.get(0)));
            case "check" -> check(Integer.parseInt(words.get(0)));
            case "topics" -> topics();
            case "read" -> {
                TopicPartition at = new TopicPartition(words.get(0), 0);
                read(List.of(at)).get(at).forEach(it ->
                    System.out.println(it.offset() + "\t" + it.timestamp() + "\t" + text(it.key()) + "\t" + text(it.value())));
            }
            case "features" -> features();
            case "show-features" -> showFeatures();
            case "transactions" -> transactions();
            case "committed" -> {
                TopicPartition at = new TopicPartition(TRANSACTIONS, 0);
                System.out.println(read(List.of(at), "isolation.level=read_committed").get(at).size());
            }
            case "other-groups" -> otherGroups();
            case "group" -> group(Integer.parseInt(words.get(0)));
            case "show-groups" -> showGroups();
            default -> throw new IllegalArgumentException("no command " + command);
        }
    }

    /** Segments roll with the hours of the records, and by size. */
    private void create() throws Exception {
        Map<String, String> rolling = Map.of("segment.ms", Long.toString(HOUR / 2), "retention.ms", "-1", "index.interval.bytes", "500");
        List<NewTopic> topics = new ArrayList<>();
        for (String codec : CODECS) topics.add(new NewTopic(codec, PARTITIONS, (short) 1).configs(rolling));
        Map<String, String> large = Map.of("segment.bytes", "1048576", "retention.ms", "-1");
        topics.add(new NewTopic(LARGE, 1, (short) 1).configs(large));
        topics.add(new NewTopic(TRANSACTIONS, 1, (short) 1).configs(Map.of("retention.ms", "-1")));
        topics.add(new NewTopic("sequences", 1, (short) 1).configs(Map.of("retention.ms", "-1")));
        admin.createTopics(topics).all().get();
    }

    private static int recordsOf(String topic) {
        return topic.equals(LARGE) ? LARGE_ROUND : ROUND;
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, int offset) {
        Random random = new Random(Objects.hash(topic, partition, offset));
        byte[] key = offset % 7 == 3 ? null : ("key " + offset).getBytes();
        byte[] value = offset % 11 == 5 ? null : new byte[topic.equals(LARGE) ? 5_000 : random.nextInt(400)];
        // Half of it repeats, so that codecs have something to do.
        if (value != null && topic.equals(LARGE)) random.nextBytes(value);
        else if (value != null) for (int at = 0; at < value.length; at++) value[at] = (byte) (at % 2 == 0 ? at : random.nextInt());
        List<Header> headers = new ArrayList<>();
        if (offset % 3 == 1) {
            headers.add(new RecordHeader("a", new byte[] {(byte) offset}));
            headers.add(new RecordHeader("n", null));
            headers.add(new RecordHeader("a", new byte[0]));
        }
        // A third of a round to the hour, and within it not in order.
        int hour = 3 * (offset / recordsOf(topic)) + 3 * (offset % recordsOf(topic)) / recordsOf(topic);
        long timestamp = START + hour * HOUR + offset * 7L % 10 * 1000;
        return new ProducerRecord<>(topic, partition, timestamp, key, value, headers);
    }

    private static List<String> topicNames() {
        List<String> names = new ArrayList<>(CODECS);
        names.add(LARGE);
        return names;
    }

    private static int partitionsOf(String topic) {
        return topic.equals(LARGE) ? 1 : PARTITIONS;
    }

    private void write(int round) throws Exception {
        for (String topic : topicNames()) {
            String codec = topic.equals(LARGE) ? "none" : topic;
            Properties settings = settings("acks=all", "compression.type=" + codec, "batch.size=1500", "linger.ms=5",
                "enable.idempotence=" + !topic.equals("gzip"));
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int partition = 0; partition < partitionsOf(topic); partition++) {
                    Map<Integer, Future<RecordMetadata>> sent = new TreeMap<>();
                    int records = recordsOf(topic);
                    for (int offset = round * records; offset < (round + 1) * records; offset++)
                        sent.put(offset, producer.send(record(topic, partition, offset)));
                    for (Map.Entry<Integer, Future<RecordMetadata>> one : sent.entrySet())
                        same(topic + " offset", (long) one.getKey(), one.getValue().get().offset());
                }
            }
        }
    }

    /** Everything that the first rounds wrote, and nothing else. */
    private void check(int rounds) {
        List<TopicPartition> all = new ArrayList<>();
        for (String topic : topicNames())
            for (int partition = 0; partition < partitionsOf(topic); partition++) all.add(new TopicPartition(topic, partition));
        int count = 0;
        for (Map.Entry<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> one : read(all).entrySet()) {
            TopicPartition at = one.getKey();
            same("records of " + at, rounds * recordsOf(at.topic()), one.getValue().size());
            int offset = 0;
            for (ConsumerRecord<byte[], byte[]> found : one.getValue()) compare(record(at.topic(), at.partition(), offset), found, offset++);
            count += one.getValue().size();
        }
        System.out.println(count);
    }

    private static void compare(ProducerRecord<byte[], byte[]> sent, ConsumerRecord<byte[], byte[]> found, long offset) {
        String place = found.topic() + "-" + found.partition() + "@" + offset;
        same(place + " offset", offset, found.offset());
        same(place + " timestamp", sent.timestamp(), found.timestamp());
        same(place + " key", Arrays.toString(sent.key()), Arrays.toString(found.key()));
        same(place + " value", Arrays.toString(sent.value()), Arrays.toString(found.value()));
        same(place + " headers", Arrays.toString(sent.headers().toArray()), Arrays.toString(found.headers().toArray()));
    }

    private static void same(String what, Object expected, Object found) {
        if (!expected.equals(found)) throw new IllegalStateException(what + ": " + found + ", expected " + expected);
    }

    /** All records of some partitions, from their beginning to where they end now. */
    private Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> read(List<TopicPartition> partitions, String... more) {
        Properties settings = settings(more);
        settings.put("auto.offset.reset", "none");
        settings.put("fetch.max.wait.ms", "100");
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found = new HashMap<>();
        partitions.forEach(at -> found.put(at, new ArrayList<>()));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(partitions);
            partitions.forEach(at -> consumer.seek(at, 0));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            for (long late = System.currentTimeMillis() + PATIENCE_MS; ; ) {
                List<TopicPartition> left = partitions.stream().filter(at -> consumer.position(at) < ends.get(at)).toList();
                if (left.isEmpty()) return found;
                consumer.poll(POLL).forEach(record -> found.get(new TopicPartition(record.topic(), record.partition())).add(record));
                if (System.currentTimeMillis() > late) throw new IllegalStateException("not read to the end: " + left + " of " + ends);
            }
        }
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : new String(bytes);
    }

    private void topics() throws Exception {
        Collection<String> names = new TreeSet<>(admin.listTopics().names().get());
        admin.describeTopics(names).allTopicNames().get().values().stream()
            .sorted((a, b) -> a.name().compareTo(b.name()))
            .forEach(it -> System.out.println(it.name() + " " + it.topicId() + " " + it.partitions().size()));
    }

    /** One of each thing that a cluster's metadata can hold beside topics. */
    private void features() throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "reader", ClientQuotaEntity.CLIENT_ID, "app"));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", 1e6))))).all().get();
        ScramCredentialInfo scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("reader", scram, "secret"))).all().get();
        ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, "other-", PatternType.PREFIXED);
        admin.createAcls(List.of(new AclBinding(pattern, new AccessControlEntry("User:reader", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
        Map<ConfigResource, Collection<AlterConfigOp>> configs = new HashMap<>();
        set(configs, ConfigResource.Type.BROKER, "1", "follower.replication.throttled.rate", "7654321");
        set(configs, ConfigResource.Type.BROKER, "", "log.retention.ms", "-1");
        set(configs, ConfigResource.Type.TOPIC, "none", "max.message.bytes", "900000");
        set(configs, ConfigResource.Type.CLIENT_METRICS, "subscription", "interval.ms", "60000");
        set(configs, ConfigResource.Type.GROUP, "some-group", "consumer.session.timeout.ms", "50000");
        admin.incrementalAlterConfigs(configs).all().get();
    }

    private static void set(Map<ConfigResource, Collection<AlterConfigOp>> configs, ConfigResource.Type type, String name, String key, String value) {
        configs.put(new ConfigResource(type, name), List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
    }

    private void showFeatures() throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        lines.add("quotas " + admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        lines.add("scram " + admin.describeUserScramCredentials().all().get());
        lines.add("acls " + admin.describeAcls(AclBindingFilter.ANY).values().get());
        lines.add("features " + new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()));
        List<ConfigResource> resources = List.of(new ConfigResource(ConfigResource.Type.BROKER, "1"), new ConfigResource(ConfigResource.Type.BROKER, ""),
            new ConfigResource(ConfigResource.Type.TOPIC, "none"), new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "subscription"),
            new ConfigResource(ConfigResource.Type.GROUP, "some-group"));
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> config.entries().stream()
            .filter(it -> it.source().name().startsWith("DYNAMIC"))
            .forEach(it -> lines.add("config " + resource + " " + it.name() + "=" + it.value() + " " + it.source())));
        lines.forEach(System.out::println);
    }

    /** One transaction that is committed and one that is aborted. */
    private void transactions() throws Exception {
        Properties settings = settings("transactional.id=round-trip");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (boolean commit : new boolean[] {true, false, true}) {
                producer.beginTransaction();
                for (int at = 0; at < 10; at++) producer.send(record(TRANSACTIONS, 0, at)).get();
                if (commit) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
    }

    /** Groups of the newer types, which leave records of their own among the offsets. */
    private void otherGroups() throws Exception {
        Properties settings = settings("group.id=consumer-group", "group.protocol=consumer", "auto.offset.reset=earliest", "enable.auto.commit=false");
        subscribeAndCommit(settings, 5, "from the consumer protocol");
        Map<ConfigResource, Collection<AlterConfigOp>> configs = new HashMap<>();
        set(configs, ConfigResource.Type.GROUP, "share-group", "share.auto.offset.reset", "earliest");
        admin.incrementalAlterConfigs(configs).all().get();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings("group.id=share-group"), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("none"));
            int read = 0;
            for (long late = System.currentTimeMillis() + PATIENCE_MS; read == 0; ) {
                read += consumer.poll(POLL).count();
                if (System.currentTimeMillis() > late) throw new IllegalStateException("a share consumer reads nothing");
            }
            consumer.commitSync();
        }
    }

    private void subscribeAndCommit(Properties settings, long offset, String metadata) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("none"));
            for (long late = System.currentTimeMillis() + PATIENCE_MS; consumer.assignment().size() < PARTITIONS; ) {
                consumer.poll(POLL);
                if (System.currentTimeMillis() > late) throw new IllegalStateException("no partitions were assigned");
            }
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (int partition = 0; partition < PARTITIONS; partition++)
                offsets.put(new TopicPartition("none", partition), new OffsetAndMetadata(offset + partition, metadata));
            consumer.commitSync(offsets);
        }
    }

    private void group(int round) {
        subscribeAndCommit(settings("group.id=classic-group", "auto.offset.reset=earliest", "enable.auto.commit=false"), 10L * round, "round " + round);
    }

    private void showGroups() throws Exception {
        for (String group : List.of("classic-group", "consumer-group")) {
            Map<TopicPartition, OffsetAndMetadata> offsets =
                admin.listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec())).all().get().get(group);
            offsets.entrySet().stream().map(it -> group + " " + it.getKey() + " " + it.getValue().offset() + " " + it.getValue().metadata())
                .sorted().forEach(System.out::println);
        }
        admin.listGroups().all().get().stream().map(it -> it.groupId() + " " + it.type()).sorted().forEach(System.out::println);
    }
}
