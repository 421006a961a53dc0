// Asks Kafka 4.4's own LogValidator what becomes of record sets that a client sends.
//
//     java -cp 'kafka-4.4-libs/*' Validate.java < validate.txt > again.txt     (they must be the same)
//
// Each line: rules (bit 0: compacted topic, bit 1: LogAppendTime), the bytes in hexadecimal, and the verdict: either
// the maximum timestamp and the batch's header at offset 1000 and leader epoch 4, or the error code and the record
// errors. On input everything after the bytes is ignored. The inputs are mutations of good batches, with checksum and
// length made right again; ../records_golden.rs holds our rules to the same verdicts.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class Validate {
    static String verdict(byte[] bytes, int rules) {
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
            ProduceRequest.validateRecords((short) 9, records);
            int valid = 0;
            CompressionType source = CompressionType.NONE;
            // What UnifiedLog looks at before.
            for (MutableRecordBatch batch : records.batches()) {
                if (batch.baseOffset() != 0) throw new InvalidRecordException("base offset");
                if (batch.sizeInBytes() > 4000) throw new RecordTooLargeException("size");
                if (!batch.isValid()) throw new CorruptRecordException("checksum");
                valid += batch.sizeInBytes();
                source = batch.compressionType();
            }
            records = MemoryRecords.readableRecords(ByteBuffer.wrap(Arrays.copyOf(bytes, valid)));
            LogValidator validator = new LogValidator(records, new TopicPartition("t", 0), new FixedTime(), source,
                Compression.of(source).build(), (rules & 1) != 0, (byte) 2,
                (rules & 2) != 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                86_400_000L, 3_600_000L, 4, AppendOrigin.CLIENT, 250);
            LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(1000), new NoMetrics(), BufferSupplier.NO_CACHING);
            byte[] header = new byte[61];
            result.validatedRecords().buffer().duplicate().get(header);
            return "OK " + result.maxTimestampMs() + " " + HexFormat.of().formatHex(header);
        } catch (RecordValidationException e) {
            return "ERROR " + Errors.forException(e.invalidException()).code() + " " + e.recordErrors().stream()
                .map(error -> error.batchIndex + ":" + error.message).collect(Collectors.joining(";"));
        } catch (Throwable e) {
            return "ERROR " + Errors.forException(e).code() + " ";
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t");
            String verdict = verdict(HexFormat.of().parseHex(parts[1]), Integer.parseInt(parts[0]));
            System.out.println(parts[0] + "\t" + parts[1] + "\t" + verdict);
        }
    }
}

class FixedTime implements Time {
    public long milliseconds() { return 1_700_000_000_000L; }
    public long nanoseconds() { return 0; }
    public long hiResClockMs() { return 0; }
    public void sleep(long ms) { }
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
}

class NoMetrics implements LogValidator.MetricsRecorder {
    public void recordInvalidMagic() { }
    public void recordInvalidOffset() { }
    public void recordInvalidSequence() { }
    public void recordInvalidChecksums() { }
    public void recordNoKeyCompactedTopic() { }
}
