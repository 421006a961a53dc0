import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Apache's command-line tools, one after the other in one process, because each start of a JVM costs seconds. A line of
 * input is a class and its arguments, parted by tabs; the answer is the exit code and both streams in base64. A tool that
 * ends itself is kept where it stands: its thread never goes on, as in a process that is gone.
 */
public final class Commands {
    private static final PrintStream OUT = System.out;
    private static final PrintStream ERR = System.err;
    private static final List<CountDownLatch> HELD = new ArrayList<>();
    private static volatile CompletableFuture<Integer> ending;

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            List<String> rest = List.of(words).subList(1, words.length);
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            ByteArrayOutputStream complained = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
            CompletableFuture<Integer> end = new CompletableFuture<>();
            ending = end;
            Thread thread = new Thread(() -> {
                try {
                    run(words[0], rest);
                    end.complete(0);
                } catch (Throwable failure) {
                    failure.printStackTrace();
                    end.complete(1);
                }
            });
            thread.setDaemon(true);
            thread.start();
            int code = end.get(60, TimeUnit.SECONDS);
            System.out.flush();
            System.err.flush();
            System.setOut(OUT);
            System.setErr(ERR);
            OUT.println(code + "\t" + encoded(said) + "\t" + encoded(complained));
            OUT.flush();
        }
    }

    private static void end(int code) {
        ending.complete(code);
        while (true) LockSupport.park();
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    private static void run(String name, List<String> words) throws Throwable {
        switch (name) {
            case "produce" -> produce(words.get(0), words.get(1), Integer.parseInt(words.get(2)), Integer.parseInt(words.get(3)));
            case "hold" -> hold(words.get(0), words.get(1), words.get(2));
            case "release" -> HELD.forEach(CountDownLatch::countDown);
            default -> {
                try {
                    Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) words.toArray(String[]::new));
                } catch (java.lang.reflect.InvocationTargetException failure) {
                    throw failure.getCause();
                }
            }
        }
    }

    private static void produce(String bootstrap, String topic, int partition, int count) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, partition, 1_700_000_000_000L + number, null, new byte[10])).get();
            }
        }
    }

    /** A member that has read what there is, committed it, and stays until it is released. */
    private static void hold(String bootstrap, String group, String topic) throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch ready = new CountDownLatch(1);
        HELD.add(release);
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "client.id", "holder");
        Thread thread = new Thread(() -> {
            try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topic));
                while (release.getCount() > 0) {
                    boolean read = !consumer.poll(Duration.ofMillis(100)).isEmpty();
                    if (read) consumer.commitSync();
                    if (!read && !consumer.assignment().isEmpty()) ready.countDown();
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
        if (!ready.await(30, TimeUnit.SECONDS)) throw new IllegalStateException("the group does not assemble");
        HELD.remove(release);
        HELD.add(new CountDownLatch(1) {
            @Override
            public void countDown() {
                release.countDown();
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        });
    }
}
