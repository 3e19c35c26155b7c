package io.kvasir.cli.cluster;

import io.kvasir.testsupport.Signals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A main class in a JVM of its own that answers questions: a line each on its standard input, a
 * line that begins with the question on its standard output. It ends when its input does, so with
 * the JVM that has started it. One thread at a time.
 */
final class Child {
    /** What it says when it can be used. */
    static final String READY = "ready";

    private static final long PATIENCE_S = 120;

    private final List<String> command = new ArrayList<>();
    private final Path log;
    private Process process;
    private PrintStream input;
    private BlockingQueue<String> lines;

    /** What a child does with a question. */
    @FunctionalInterface
    interface Answers {
        String answer(String question) throws Exception;
    }

    /**
     * Makes one that is not yet started.
     *
     * @param log takes its standard error
     */
    Child(Path log, Class<?> main, String... arguments) {
        this.log = log;
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "-ea",
                        "-Xmx192m",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        main.getName()));
        command.addAll(List.of(arguments));
    }

    /** Begins to start it. */
    void start() throws IOException {
        process =
                new ProcessBuilder(command)
                        .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                        .start();
        input = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        final BlockingQueue<String> fresh = new LinkedBlockingQueue<>();
        final BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
        Thread.ofVirtual()
                .start(
                        () -> {
                            try (out) {
                                out.lines().forEach(fresh::add);
                            } catch (IOException | UncheckedIOException e) {
                                fresh.add("output broke off: " + e.getMessage());
                            }
                        });
        lines = fresh;
    }

    /** Waits until it can be used. */
    void awaitReady() throws InterruptedException {
        await(READY);
    }

    /** Asks it something; what it answers, without the question. */
    String ask(String question) throws InterruptedException {
        input.println(question);
        return await(question);
    }

    private String await(String beginning) throws InterruptedException {
        final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (true) {
            final String line = lines.poll(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (line == null) {
                throw new AssertionError(
                        "no " + beginning + " of " + command.getLast() + ", " + log);
            }
            if (line.startsWith(beginning)) {
                return line.substring(beginning.length()).strip();
            }
        }
    }

    /** Kills it, as kill -9 does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    void hang() throws IOException, InterruptedException {
        Signals.stop(process);
    }

    void goOn() throws IOException, InterruptedException {
        Signals.goOn(process);
    }

    /** Kills it if it runs. */
    void end() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    /** In the child: says that it can be used, and answers until its input ends. */
    static void serve(Answers answers) throws Exception {
        System.out.println(READY);
        final BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(line + " " + answers.answer(line));
        }
        Runtime.getRuntime().halt(0);
    }
}
