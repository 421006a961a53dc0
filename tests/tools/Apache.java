import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.server.fault.LoggingFaultHandler;
import org.apache.kafka.shell.MetadataShell;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Apache's tools and clients in one process, because each start of a JVM costs seconds. A line of input is a command,
 * its words parted by tabs; the answer is its lines, each behind a tab, and then "done" or "failed ...".
 */
public final class Apache {
    private static final PrintStream OUT = System.out;

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            throw new IllegalStateException("exit " + code + ": " + message);
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            String end = "done";
            try {
                List<String> words = Arrays.asList(line.split("\t", -1));
                run(words.get(0), words.subList(1, words.size()));
            } catch (Throwable failure) {
                failure.printStackTrace();
                end = "failed " + failure.toString().replace('\n', ' ');
            }
            System.out.flush();
            said.toString(StandardCharsets.UTF_8).lines().forEach(text -> OUT.println("\t" + text));
            OUT.println(end);
            OUT.flush();
        }
    }

    private static void run(String command, List<String> words) throws Exception {
        switch (command) {
            case "format" -> {
                String[] all = words.toArray(String[]::new);
                int status = kafka.tools.StorageTool.execute(all, System.out);
                if (status != 0) throw new IllegalStateException("storage tool: " + status);
            }
            case "dump" -> {
                PrintStream errors = System.err;
                System.setErr(System.out);
                try {
                    DumpLogSegments.main(words.toArray(String[]::new));
                } finally {
                    System.setErr(errors);
                }
            }
            case "admin-calls" -> AdminCalls.run(words.get(0), words.get(1));
            case "config-table" -> ConfigTable.run(words.get(0), words.get(1));
            case "apart" -> apart(words.get(0), words.get(1), words.subList(2, words.size()).toArray(String[]::new));
            case "shell" -> shell(words.get(0), words.subList(1, words.size()));
            default -> {
                try (RoundTrip client = new RoundTrip(words.get(0))) {
                    client.run(command, words.subList(1, words.size()));
                }
            }
        }
    }

    /** What a tool says on standard output, what on standard error, and how it ends. It reads a file, or nothing. */
    private static void apart(String tool, String input, String[] words) throws Exception {
        PrintStream out = System.out;
        PrintStream errors = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        String end = "end 0";
        System.setIn(input.equals("-") ? InputStream.nullInputStream() : new FileInputStream(input));
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) words);
        } catch (InvocationTargetException failure) {
            String why = failure.getCause().toString().replace('\n', ' ');
            if (!why.contains("exit 0")) end = "end 1 " + why;
        } finally {
            System.setIn(in);
            System.setOut(out);
            System.setErr(errors);
        }
        said.toString(StandardCharsets.UTF_8).lines().forEach(line -> out.println("out " + line));
        complained.toString(StandardCharsets.UTF_8).lines().forEach(line -> out.println("err " + line));
        out.println(end);
    }

    /** Now and then the shell misses that it has read all, and waits for ever: then it is asked again. */
    private static void shell(String file, List<String> words) throws Exception {
        for (int tries = 0; tries < 20; tries++) {
            MetadataShell shell = new MetadataShell(file, new LoggingFaultHandler("shell", () -> { }));
            FutureTask<Void> asked = new FutureTask<>(() -> {
                shell.run(words);
                return null;
            });
            Thread thread = new Thread(asked);
            thread.setDaemon(true);
            thread.start();
            try {
                asked.get(5, TimeUnit.SECONDS);
                return;
            } catch (TimeoutException late) {
                thread.interrupt();
            } finally {
                shell.close();
            }
        }
        throw new IllegalStateException("the metadata shell does not answer");
    }
}
