import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSynonym;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What DescribeConfigs says of every key of a fresh broker, or of a fresh topic, a line a key: name, type, default,
 * "sensitive", "read-only", "documented". Of a real Apache Kafka it is the fixture of src/config.
 */
final class ConfigTable {
    static void run(String kind, String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            ConfigResource.Type type = ConfigResource.Type.valueOf(kind);
            ConfigResource resource = new ConfigResource(type, type == ConfigResource.Type.TOPIC ? "fixture" : "1");
            if (type == ConfigResource.Type.TOPIC) {
                admin.createTopics(List.of(new NewTopic("fixture", 1, (short) 1))).all().get();
                Thread.sleep(1000);
            }
            DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
            admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries().stream()
                .sorted((a, b) -> a.name().compareTo(b.name()))
                .map(ConfigTable::line)
                .forEach(System.out::println);
        }
    }

    private static String line(ConfigEntry entry) {
        Optional<ConfigSynonym> standard = entry.synonyms().stream()
            .filter(it -> it.source() == ConfigEntry.ConfigSource.DEFAULT_CONFIG)
            .findFirst();
        String value = standard.map(it -> it.value() == null ? "null" : "=" + it.value()).orElse("none");
        return String.join("\t", entry.name(), entry.type().toString(), value,
            entry.isSensitive() ? "sensitive" : "-",
            entry.isReadOnly() ? "read-only" : "-",
            entry.documentation() == null ? "-" : "documented");
    }
}
