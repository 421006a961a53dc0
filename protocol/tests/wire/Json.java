// Adds Kafka's JSON to lines of name, version and bytes, for json_golden.txt: see json.rs.
//
//     java -cp 'jars of Apache Kafka 4.4.0/*' Json.java < cases > json_golden.txt
//
// Messages that no class of Kafka shows are left out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Readable;

public class Json {
    static final List<String> PACKAGES = List.of("org.apache.kafka.common.message.", "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.", "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.", "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.", "org.apache.kafka.storage.internals.log.generated.",
        "org.apache.kafka.server.log.internals.generated.", "org.apache.kafka.storage.internals.log.");

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        TreeSet<String> missing = new TreeSet<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            Class<?> message = null;
            Class<?> converter = null;
            for (String folder : PACKAGES) {
                try {
                    message = Class.forName(folder + words[0]);
                    converter = Class.forName(folder + words[0] + "JsonConverter");
                    break;
                } catch (ClassNotFoundException next) {
                }
            }
            if (converter == null) {
                missing.add(words[0]);
                continue;
            }
            short version = Short.parseShort(words[1]);
            Readable bytes = new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(words[2])));
            Object value = message.getConstructor(Readable.class, short.class).newInstance(bytes, version);
            out.println(line + " " + converter.getMethod("write", message, short.class).invoke(null, value, version));
        }
        out.flush();
        System.err.println("not shown by Kafka: " + missing);
    }
}
