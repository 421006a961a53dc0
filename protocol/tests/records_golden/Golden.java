// Writes golden.txt: record batches and message sets as Apache Kafka's own classes write them.
//
//     java -cp 'kafka-clients-4.4.0.jar:lz4-java-*.jar:snappy-java-*.jar:zstd-jni-*.jar:slf4j-api-*.jar' \
//         Golden.java > golden.txt
//
// One line each: a name, a space, the bytes in hexadecimal. ../records_golden.rs knows what is in them.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;

public class Golden {
    static final long T = 1_700_000_000_000L;

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static MemoryRecordsBuilder builder(byte magic, Compression compression, TimestampType type,
                                        boolean transactional) {
        boolean v2 = magic == 2;
        return MemoryRecords.builder(ByteBuffer.allocate(1024), magic, compression, type, 100L, T + 9999,
            v2 ? 7L : -1L, (short) (v2 ? 3 : -1), v2 ? 11 : -1, transactional, v2 ? 5 : -1);
    }

    static void fill(MemoryRecordsBuilder builder, boolean headers) {
        Header[] some = headers
            ? new Header[] {new RecordHeader("h", bytes("a")), new RecordHeader("h", null)}
            : new Header[0];
        builder.append(T, bytes("key-0"), bytes("value-0"), some);
        builder.append(T - 5, null, bytes(""), new Header[0]);
        builder.append(T + 70, bytes(""), null, new Header[0]);
        builder.append(T + 70, bytes("long"), bytes("0123456789".repeat(50)), new Header[0]);
    }

    static void print(String name, MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] out = new byte[buffer.remaining()];
        buffer.get(out);
        System.out.println(name + " " + HexFormat.of().formatHex(out));
    }

    public static void main(String[] args) {
        Compression[] codecs = {Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
            Compression.lz4().build(), Compression.zstd().build()};
        for (byte magic = 0; magic <= 2; magic++) {
            for (Compression codec : codecs) {
                if (magic < 2 && codec.type().name.equals("zstd")) continue;
                MemoryRecordsBuilder builder = builder(magic, codec,
                    magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME, false);
                fill(builder, magic == 2);
                print("v" + magic + "-" + codec.type().name, builder.build());
            }
        }
        MemoryRecordsBuilder transactional = builder((byte) 2, Compression.NONE, TimestampType.CREATE_TIME, true);
        fill(transactional, true);
        print("v2-transactional", transactional.build());
        for (byte magic = 1; magic <= 2; magic++) {
            MemoryRecordsBuilder appendTime =
                builder(magic, Compression.gzip().build(), TimestampType.LOG_APPEND_TIME, false);
            fill(appendTime, false);
            print("v" + magic + "-append-time", appendTime.build());
        }
        print("v2-commit", MemoryRecords.withEndTransactionMarker(100L, T, 5, 7L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 9)));
        print("v2-abort", MemoryRecords.withEndTransactionMarker(100L, T, 5, 7L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 9)));
    }
}
