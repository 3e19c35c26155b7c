package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Against libzmq itself, the publishers' library. Needs a Python with pyzmq: {@code python3}, or
 * the one that {@code KVASIR_PYTHON} names.
 */
@Tag("integration")
class LibzmqTest {
    private static final int SLOT = 1;
    private static final int BLOCK = 4;

    @TempDir Path folder;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final IndexPipeline pipeline =
            new IndexPipeline(IndexPipelineConfig.defaults().withReplay(2_000, 3, 200), index);
    private Process process;
    private PrintStream commands;
    private String endpoint;
    private String replayEndpoint;

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
        if (process != null) {
            process.destroyForcibly();
        }
    }

    private static String python() {
        final String named = System.getenv("KVASIR_PYTHON");
        return named == null ? "python3" : named;
    }

    private void start(String... arguments) throws IOException, InterruptedException {
        try {
            final Process probe = new ProcessBuilder(python(), "-c", "import zmq").start();
            if (!probe.waitFor(60, TimeUnit.SECONDS) || probe.exitValue() != 0) {
                abort("skipped: " + python() + " has no pyzmq; set KVASIR_PYTHON to one that has");
            }
        } catch (IOException e) {
            abort("skipped: there is no " + python());
        }
        final Path script = folder.resolve("publisher.py");
        try (InputStream in = LibzmqTest.class.getResourceAsStream("/libzmq_publisher.py")) {
            Files.copy(in, script);
        }
        final List<String> command =
                new java.util.ArrayList<>(List.of(python(), script.toString()));
        command.addAll(List.of(arguments));
        process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.US_ASCII);
        final BufferedReader out = process.inputReader(StandardCharsets.US_ASCII);
        final String[] words = out.readLine().split(" ", 2);
        endpoint = words[0];
        replayEndpoint = words[1];
    }

    private void say(String command, int hash) {
        final byte[] payload =
                batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
        commands.println(command + " " + HexFormat.of().formatHex(payload));
    }

    private static void await(BooleanSupplier condition, EventSource source) {
        Eventually.holds(() -> source.status().toString(), condition);
    }

    private void awaitBlocks(int blocks, EventSource source) {
        await(() -> index.heldBlocks(SLOT) == blocks && source.state() == IndexState.EXACT, source);
    }

    @Test
    void eventsReplaysAndHeartbeats() throws Exception {
        start();
        say("lose", 1);
        say("lose", 2);
        final EventSource source =
                pipeline.openZmq(
                        SourceConfig.of("w", SLOT, BLOCK, endpoint)
                                .withReplayEndpoint(replayEndpoint));
        awaitBlocks(2, source);
        say("lose", 3);
        say("publish", 4);
        awaitBlocks(4, source);
        Thread.sleep(7_000); // longer than the publisher waits for the answer to a heartbeat
        say("publish", 5);
        awaitBlocks(5, source);
        assertEquals(0, source.status().disconnects(), () -> source.status().toString());
        assertEquals(0, source.status().lostMessages());
        process.destroyForcibly();
        await(() -> source.status().disconnects() == 1, source);
    }

    @Test
    void eventsOverAUnixSocket() throws Exception {
        final String address = "ipc://" + folder.resolve("events");
        start(address);
        final EventSource source =
                pipeline.openZmq(
                        SourceConfig.of("w", SLOT, BLOCK, address)
                                .withReplayEndpoint(replayEndpoint));
        say("lose", 1);
        awaitBlocks(1, source);
        say("publish", 2);
        awaitBlocks(2, source);
    }

    @Test
    void aPublisherThatConnectsToUs() throws Exception {
        start();
        final EventSource source =
                pipeline.openZmq(
                        SourceConfig.of("w", SLOT, BLOCK, "tcp://127.0.0.1:*")
                                .withBind(true)
                                .withTopic("kv@10.0.0.1@m")
                                .withReplayEndpoint(replayEndpoint));
        commands.println("connect " + source.status().endpoint() + " kv@10.0.0.1@m");
        say("lose", 1);
        awaitBlocks(1, source);
        say("publish", 2);
        awaitBlocks(2, source);
        assertEquals(0, source.status().disconnects());
    }

    @Test
    void theReplaySocketInsteadOfThePublisherIsNamed() throws Exception {
        start();
        final EventSource source =
                pipeline.openZmq(SourceConfig.of("w", SLOT, BLOCK, replayEndpoint));
        await(() -> source.status().problem().contains("is a ZMQ socket of type 'ROUTER'"), source);
    }
}
