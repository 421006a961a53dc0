import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Calls every method that Java's Admin client has, and prints what each answers: "method, what with, answer", parted by
 * tabs. What two clusters cannot have in common (ids, ports, times, directories) is replaced by words.
 */
final class AdminCalls {
    private static final String TOPIC = "calls";
    private static final String GROUP = "calls-group";
    private static final int SECONDS = 20;

    private final Admin admin;
    private final String bootstrap;
    private final boolean controller;
    private final Set<String> called = new TreeSet<>();

    private interface Call {
        Object answer() throws Exception;
    }

    private AdminCalls(String kind, String bootstrap) {
        this.bootstrap = bootstrap;
        this.controller = kind.equals("controllers");
        Properties properties = new Properties();
        properties.put("bootstrap." + kind, bootstrap);
        properties.put("default.api.timeout.ms", "10000");
        properties.put("request.timeout.ms", "5000");
        properties.put("retry.backoff.ms", "200");
        properties.put("retry.backoff.max.ms", "200");
        Admin real = Admin.create(properties);
        InvocationHandler remember = (proxy, method, arguments) -> {
            called.add(method.getName());
            try {
                return method.isDefault() && !method.getName().equals("close")
                    ? InvocationHandler.invokeDefault(proxy, method, arguments)
                    : method.invoke(real, arguments);
            } catch (InvocationTargetException failure) {
                throw failure.getCause();
            }
        };
        this.admin = (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class}, remember);
    }

    /** @param kind "servers" or "controllers" */
    static void run(String kind, String bootstrap) throws Exception {
        AdminCalls calls = new AdminCalls(kind, bootstrap);
        try {
            calls.await(() -> !calls.admin.describeCluster().nodes().get().isEmpty());
            calls.cluster();
            calls.topics();
            calls.configs();
            calls.partitions();
            calls.groups();
            calls.otherGroups();
            calls.transactions();
            calls.security();
            calls.client();
        } finally {
            calls.admin.close(Duration.ofSeconds(1));
        }
        Set<String> all = new TreeSet<>();
        for (Method method : Admin.class.getMethods()) all.add(method.getName());
        all.removeAll(Set.of("create", "close"));
        all.removeAll(calls.called);
        if (!all.isEmpty()) throw new IllegalStateException("never called: " + all);
    }

    private void cluster() {
        row("describeCluster", "nodes", () -> admin.describeCluster().nodes());
        row("describeCluster", "controller", () -> admin.describeCluster().controller());
        row("describeCluster", "operations", () -> admin.describeCluster(new DescribeClusterOptions()
            .includeAuthorizedOperations(true)).authorizedOperations().thenApply(TreeSet::new));
        row("describeMetadataQuorum", "leader, voters, observers", () -> admin.describeMetadataQuorum().quorumInfo()
            .thenApply(it -> "leader " + it.leaderId() + ", voters " + ids(it.voters()) + ", observers " + ids(it.observers())));
        row("describeMetadataQuorum", "nodes", () -> admin.describeMetadataQuorum().quorumInfo().thenApply(it -> it.nodes()));
        row("describeFeatures", "finalized", () -> admin.describeFeatures(options()).featureMetadata()
            .thenApply(it -> new TreeMap<>(it.finalizedFeatures())));
        row("describeFeatures", "supported", () -> admin.describeFeatures(options()).featureMetadata()
            .thenApply(it -> new TreeMap<>(it.supportedFeatures())));
        row("updateFeatures", "to a level of tomorrow", () -> update("metadata.version", 99, false));
        row("updateFeatures", "to the level that it is, only checked", () -> update("metadata.version", 33, true));
        row("unregisterBroker", "one that is not there", () -> admin.unregisterBroker(70_000).all());
        row("unregisterController", "one that is not there", () -> admin.unregisterController(70_000).all());
        row("addRaftVoter", "one that is not there", () -> admin.addRaftVoter(70_000, Uuid.ONE_UUID,
            Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 1))).all());
        row("removeRaftVoter", "one that is not there", () -> admin.removeRaftVoter(70_000, Uuid.ONE_UUID).all());
    }

    /** Where only controllers are known, features are asked of one. */
    private DescribeFeaturesOptions options() {
        return new DescribeFeaturesOptions();
    }

    private KafkaFuture<Void> update(String feature, int level, boolean only) {
        FeatureUpdate update = new FeatureUpdate((short) level, FeatureUpdate.UpgradeType.UPGRADE);
        return admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions().validateOnly(only)).all();
    }

    private static String ids(Collection<QuorumInfo.ReplicaState> replicas) {
        return replicas.stream().map(QuorumInfo.ReplicaState::replicaId).toList().toString();
    }

    private void topics() {
        row("createTopics", "one", () -> {
            CreateTopicsResult created = admin.createTopics(List.of(new NewTopic(TOPIC, 2, (short) 1)));
            created.all().get(SECONDS, TimeUnit.SECONDS);
            return created.numPartitions(TOPIC).thenApply(partitions -> partitions + " partitions");
        });
        row("createTopics", "one that exists", () -> admin.createTopics(List.of(new NewTopic(TOPIC, 2, (short) 1))).all());
        row("createTopics", "more replicas than brokers",
            () -> admin.createTopics(List.of(new NewTopic("more", 1, (short) 3))).all());
        row("createPartitions", "from 2 to 3", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(3))).all());
        row("createPartitions", "fewer", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(1))).all());
        await(() -> admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC).partitions().size() == 3);
        row("listTopics", "all", () -> admin.listTopics().names().thenApply(it -> it.stream().sorted().toList()));
        row("describeTopics", "by name", () -> admin.describeTopics(List.of(TOPIC)).allTopicNames());
        row("describeTopics", "one that is not there", () -> admin.describeTopics(List.of("nothing")).allTopicNames());
        row("deleteTopics", "one that is not there", () -> admin.deleteTopics(List.of("nothing")).all());
        row("listOffsets", "earliest and latest", () -> {
            fill();
            return admin.listOffsets(Map.of(partition(0), OffsetSpec.latest(), partition(1), OffsetSpec.earliest())).all();
        });
        row("deleteRecords", "below 2", () -> admin.deleteRecords(Map.of(partition(0), RecordsToDelete.beforeOffset(2)))
            .lowWatermarks().get(partition(0)).thenApply(it -> "from " + it.lowWatermark()));
        row("describeProducers", "of a partition", () -> admin.describeProducers(List.of(partition(1))).all()
            .thenApply(it -> it.get(partition(1)).activeProducers()));
    }

    private static TopicPartition partition(int index) {
        return new TopicPartition(TOPIC, index);
    }

    /** Five records in partition 0. */
    private void fill() throws Exception {
        if (controller) return;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("enable.idempotence", "false");
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 5; i++) producer.send(new ProducerRecord<>(TOPIC, 0, "key", "value")).get();
        }
    }

    private void configs() {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource cluster = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource loggers = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, GROUP);
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "subscription");
        row("incrementalAlterConfigs", "a topic's retention", () -> set(topic, "retention.ms", "60000"));
        row("incrementalAlterConfigs", "a key that nobody knows", () -> set(topic, "nothing", "1"));
        row("incrementalAlterConfigs", "a broker's largest batch", () -> set(broker, "message.max.bytes", "2000000"));
        row("incrementalAlterConfigs", "a key that cannot change", () -> set(broker, "node.id", "2"));
        row("incrementalAlterConfigs", "for all brokers", () -> set(cluster, "log.retention.ms", "70000"));
        row("incrementalAlterConfigs", "the root logger", () -> set(loggers, "root", "WARN"));
        row("incrementalAlterConfigs", "a group", () -> set(group, "consumer.session.timeout.ms", "50000"));
        row("incrementalAlterConfigs", "client metrics", () -> set(metrics, "interval.ms", "5000"));
        for (ConfigResource resource : List.of(topic, broker, cluster, loggers, group, metrics)) {
            String key = Map.of(topic, "retention.ms", broker, "message.max.bytes", cluster, "log.retention.ms",
                loggers, "root", group, "consumer.session.timeout.ms", metrics, "interval.ms").get(resource);
            String name = resource.type() + (resource.name().isEmpty() ? " of all" : "");
            row("describeConfigs", name + ", " + key, () -> admin.describeConfigs(List.of(resource)).all()
                .thenApply(it -> it.get(resource).get(key))
                .thenApply(it -> it == null ? "none" : it.value() + " from " + it.source()));
        }
        for (ConfigResource resource : List.of(broker, cluster, loggers)) {
            row("incrementalAlterConfigs", "back: " + resource.type() + (resource.name().isEmpty() ? " of all" : ""), () -> {
                if (resource.equals(loggers)) return set(resource, "root", "INFO");
                return delete(resource, resource.equals(broker) ? "message.max.bytes" : "log.retention.ms");
            });
        }
        row("listConfigResources", "topics and brokers", () -> admin.listConfigResources(
            Set.of(ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER), new ListConfigResourcesOptions()).all()
            .thenApply(it -> it.stream().map(Object::toString).sorted().toList()));
        row("listClientMetricsResources", "all", () -> admin.listClientMetricsResources().all());
    }

    private KafkaFuture<Void> set(ConfigResource resource, String key, String value) {
        return alter(resource, new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
    }

    private KafkaFuture<Void> delete(ConfigResource resource, String key) {
        return alter(resource, new ConfigEntry(key, ""), AlterConfigOp.OpType.DELETE);
    }

    private KafkaFuture<Void> alter(ConfigResource resource, ConfigEntry entry, AlterConfigOp.OpType operation) {
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(entry, operation)))).all();
    }

    private void partitions() {
        row("describeLogDirs", "of this broker", () -> admin.describeLogDirs(List.of(1)).allDescriptions()
            .thenApply(it -> it.get(1).size() + " directories, error " + it.get(1).values().iterator().next().error()));
        TopicPartitionReplica replica = new TopicPartitionReplica(TOPIC, 0, 1);
        row("describeReplicaLogDirs", "of a replica", () -> admin.describeReplicaLogDirs(List.of(replica)).all()
            .thenApply(it -> it.get(replica).getCurrentReplicaLogDir() == null ? "none" : "a directory"));
        row("alterReplicaLogDirs", "to a directory that is not there",
            () -> admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")).all());
        row("electLeaders", "preferred", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition(0))).all());
        row("alterPartitionReassignments", "to where it is", () -> admin.alterPartitionReassignments(
            Map.of(partition(0), Optional.of(new NewPartitionReassignment(List.of(1))))).all());
        row("alterPartitionReassignments", "to a broker that is not there", () -> admin.alterPartitionReassignments(
            Map.of(partition(0), Optional.of(new NewPartitionReassignment(List.of(7))))).all());
        row("listPartitionReassignments", "all", () -> admin.listPartitionReassignments().reassignments());
    }

    private void groups() {
        row("alterConsumerGroupOffsets", "of an empty group",
            () -> admin.alterConsumerGroupOffsets(GROUP, Map.of(partition(0), new OffsetAndMetadata(3))).all());
        row("listGroups", "all", () -> admin.listGroups().all());
        row("listConsumerGroups", "all", () -> admin.listConsumerGroups().all());
        row("listConsumerGroupOffsets", "of a group",
            () -> admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata());
        row("describeConsumerGroups", "one without members", () -> admin.describeConsumerGroups(List.of(GROUP)).all()
            .thenApply(it -> it.get(GROUP).groupState() + ", " + it.get(GROUP).members().size() + " members"));
        row("describeConsumerGroups", "one that is not there",
            () -> admin.describeConsumerGroups(List.of("nobody")).all());
        row("describeClassicGroups", "one without members", () -> admin.describeClassicGroups(List.of(GROUP)).all()
            .thenApply(it -> it.get(GROUP).state()));
        row("removeMembersFromConsumerGroup", "all of none",
            () -> admin.removeMembersFromConsumerGroup(GROUP, new RemoveMembersFromConsumerGroupOptions()).all());
        row("deleteConsumerGroupOffsets", "one", () -> admin.deleteConsumerGroupOffsets(GROUP, Set.of(partition(0))).all());
        row("deleteConsumerGroups", "one that is not there", () -> admin.deleteConsumerGroups(List.of("nobody")).all());
        row("deleteConsumerGroups", "one", () -> admin.deleteConsumerGroups(List.of(GROUP)).all());
    }

    private void otherGroups() {
        row("describeShareGroups", "one that is not there", () -> admin.describeShareGroups(List.of("share")).all());
        row("listShareGroupOffsets", "of one that is not there", () -> admin.listShareGroupOffsets(
            Map.of("share", new ListShareGroupOffsetsSpec())).all());
        row("alterShareGroupOffsets", "of a new one",
            () -> admin.alterShareGroupOffsets("share", Map.of(partition(0), 1L)).all());
        row("deleteShareGroupOffsets", "of one that is not there",
            () -> admin.deleteShareGroupOffsets("no-share", Set.of(TOPIC)).all());
        row("deleteShareGroups", "one that is not there", () -> admin.deleteShareGroups(List.of("no-share")).all());
        row("describeStreamsGroups", "one that is not there", () -> admin.describeStreamsGroups(List.of("streams")).all());
        row("listStreamsGroupOffsets", "of one that is not there", () -> admin.listStreamsGroupOffsets(
            Map.of("streams", new ListStreamsGroupOffsetsSpec())).all());
        row("alterStreamsGroupOffsets", "of a new one",
            () -> admin.alterStreamsGroupOffsets("streams", Map.of(partition(0), new OffsetAndMetadata(1))).all());
        row("deleteStreamsGroupOffsets", "of a group",
            () -> admin.deleteStreamsGroupOffsets("streams", Set.of(partition(0))).all());
        row("deleteStreamsGroups", "one that is not there", () -> admin.deleteStreamsGroups(List.of("no-streams")).all());
    }

    private void transactions() {
        row("listTransactions", "all", () -> admin.listTransactions().all());
        row("describeTransactions", "one that is not there", () -> admin.describeTransactions(List.of("nothing")).all());
        row("abortTransaction", "where none is open",
            () -> admin.abortTransaction(new AbortTransactionSpec(partition(0), 7, (short) 0, 0)).all());
        row("fenceProducers", "of a new id", () -> admin.fenceProducers(List.of("calls-id")).all());
        row("forceTerminateTransaction", "of an id that is not there",
            () -> admin.forceTerminateTransaction("calls-other").result());
    }

    private void security() {
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        row("createAcls", "one", () -> admin.createAcls(List.of(acl)).all());
        row("describeAcls", "all", () -> admin.describeAcls(AclBindingFilter.ANY).values());
        row("deleteAcls", "all", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)).all());
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "a"));
        row("describeClientQuotas", "all", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        row("alterClientQuotas", "of a user", () -> admin.alterClientQuotas(List.of(
            new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0))))).all());
        row("describeUserScramCredentials", "all", () -> admin.describeUserScramCredentials().users());
        row("describeUserScramCredentials", "of nobody",
            () -> admin.describeUserScramCredentials(List.of("nobody")).description("nobody"));
        row("alterUserScramCredentials", "of a user", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("a", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret")))
            .all());
        row("createDelegationToken", "one", () -> admin.createDelegationToken().delegationToken());
        row("renewDelegationToken", "of nothing", () -> admin.renewDelegationToken(new byte[] {1}).expiryTimestamp());
        row("expireDelegationToken", "of nothing", () -> admin.expireDelegationToken(new byte[] {1}).expiryTimestamp());
        row("describeDelegationToken", "all", () -> admin.describeDelegationToken().delegationTokens());
    }

    /** What the client answers by itself, or almost. */
    private void client() {
        row("clientInstanceId", "", () -> admin.clientInstanceId(Duration.ofSeconds(3)) != null);
        row("metrics", "any", () -> !admin.metrics().isEmpty());
        row("registerMetricForSubscription", "none", () -> {
            admin.registerMetricForSubscription(null);
            return "done";
        });
        row("unregisterMetricFromSubscription", "none", () -> {
            admin.unregisterMetricFromSubscription(null);
            return "done";
        });
        row("deleteTopics", "one", () -> admin.deleteTopics(List.of(TOPIC)).all());
    }

    /** Waits until a change is seen everywhere; gives up where it cannot be asked. */
    private void await(java.util.concurrent.Callable<Boolean> condition) {
        for (int tries = 0; tries < 50 && !controller; tries++) {
            try {
                if (condition.call()) return;
                Thread.sleep(100);
            } catch (Exception notYet) {
                if (tries > 10) return;
            }
        }
    }

    private void row(String method, String what, Call call) {
        String answer;
        try {
            answer = text(resolve(call.answer()));
        } catch (Throwable failure) {
            Throwable cause = failure;
            while (cause instanceof ExecutionException && cause.getCause() != null) cause = cause.getCause();
            String message = String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
            answer = cause.getClass().getSimpleName() + ": " + message;
        }
        System.out.println(method + "\t" + what + "\t" + plain(answer));
    }

    /** What futures, and maps of futures, come to. */
    private static Object resolve(Object answer) throws Exception {
        if (answer instanceof KafkaFuture<?> future) return resolve(future.get(SECONDS, TimeUnit.SECONDS));
        if (answer instanceof Map<?, ?> map) {
            Map<String, Object> resolved = new TreeMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) resolved.put(text(entry.getKey()), resolve(entry.getValue()));
            return resolved;
        }
        return answer;
    }

    private static String text(Object answer) {
        if (answer == null) return "done";
        if (answer instanceof Collection<?> all && !(answer instanceof List<?>)) {
            List<String> texts = new ArrayList<>();
            for (Object one : all) texts.add(text(one));
            texts.sort(Comparator.naturalOrder());
            return texts.toString();
        }
        if (answer instanceof Object[] all) return Arrays.toString(all);
        return String.valueOf(answer);
    }

    /** The same text of two clusters that answer alike. */
    private String plain(String text) {
        String port = bootstrap.substring(bootstrap.lastIndexOf(':') + 1);
        return text.replaceAll("\\b(127\\.0\\.0\\.1|localhost):" + port + "\\b", "HOST:PORT")
            .replaceAll("port=" + port + "\\b", "port=PORT")
            .replaceAll("\\b(127\\.0\\.0\\.1|localhost)\\b", "HOST")
            .replaceAll("(port=|HOST:)\\d+", "$1PORT")
            .replaceAll("\\b1[0-9]{12}\\b", "TIME")
            .replaceAll("(?<![A-Za-z0-9_-])(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])", "ID")
            .replaceAll("@[0-9a-f]{5,8}\\b", "")
            .replaceAll("[Ee]poch[:=] ?\\d+", "epoch=N")
            .replaceAll("\\s+", " ")
            .replace("|", "\\|");
    }
}
