package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.nats.Patient;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.pipeline.source.ZmqEventPlaneSource;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventDecoder;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.testsupport.DynamoRuntime;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** Another router's publisher is read, and its index reads what is published here. */
@Tag("integration") // starts a server and fetches a package
class ThirdPartyTest {
    private static final int STORES = 2_000;
    private static final Pattern ADDRESS = Pattern.compile("tcp://[^\"]+");

    @RegisterExtension static final RunningNats NATS = new RunningNats();
    private static Path runtime;

    @BeforeAll
    static void fetchRuntime() throws InterruptedException {
        try {
            runtime = DynamoRuntime.install();
        } catch (IOException e) {
            abort("skipped: " + e.getMessage());
        }
    }

    private static Path program(String name) throws URISyntaxException {
        return Path.of(ThirdPartyTest.class.getResource("/" + name).toURI());
    }

    @Test
    void everyEventOfItsPublisherOverNatsIsRead() throws Exception {
        final EventSubjects names = EventSubjects.kvEvents("my_ns", "backend", "generate");
        try (ObservedPlane observed = new ObservedPlane()) {
            final NatsEventSource source =
                    new NatsEventSource(Patient.access(NATS.url()), names, observed.plane);
            observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
            final Process publisher =
                    DynamoRuntime.start(
                            runtime,
                            program("third_party_publisher.py"),
                            Map.of("NATS_SERVER", NATS.url()),
                            "my_ns.backend.generate",
                            Long.toString(ObservedPlane.WORKER),
                            Integer.toString(STORES));
            try {
                final List<Long> odd =
                        LongStream.rangeClosed(1, STORES).filter(i -> i % 2 == 1).boxed().toList();
                observed.await(() -> observed.held().equals(odd), "every second block");
                observed.await(IndexState.EXACT);
                assertEquals(STORES * 3L / 2, observed.stream.status().lastSequence());
                assertEquals(0, observed.stream.status().gaps());
                assertEquals(0, observed.plane.status().unreadable());
            } finally {
                publisher.destroyForcibly();
                source.close();
            }
        }
    }

    @Test
    void everyEventOfItsPublisherOverZmqIsRead(@TempDir Path registrations) throws Exception {
        final Process publisher =
                DynamoRuntime.start(
                        runtime,
                        program("third_party_publisher.py"),
                        Map.of("DYN_FILE_KV", registrations.toString()),
                        "my_ns.backend.generate",
                        Long.toString(ObservedPlane.WORKER),
                        Integer.toString(STORES),
                        "zmq");
        try (ObservedPlane observed = new ObservedPlane();
                BufferedReader said = publisher.inputReader(StandardCharsets.UTF_8)) {
            assertEquals("ready", said.readLine());
            observed.await(() -> !address(registrations).isEmpty(), "its address");
            final ZmqEventPlaneSource source =
                    new ZmqEventPlaneSource(
                            List.of(address(registrations)),
                            EventSubjects.kvEvents("my_ns", "backend", "generate").zmqTopics(),
                            ZmqConfig.defaults(),
                            observed.plane,
                            true);
            try (BufferedWriter out = publisher.outputWriter(StandardCharsets.UTF_8)) {
                observed.await(() -> observed.plane.status().unconnected().isEmpty(), "connection");
                // its socket takes the subscription before the query behind it, which is unanswered
                observed.await(() -> observed.plane.status().failedRecoveries() > 0, "no answer");
                out.newLine();
                out.flush();
                final List<Long> odd =
                        LongStream.rangeClosed(1, STORES).filter(i -> i % 2 == 1).boxed().toList();
                observed.await(() -> observed.held().equals(odd), "every second block");
                observed.await(IndexState.EXACT);
                assertEquals(STORES * 3L / 2, observed.stream.status().lastSequence());
                assertEquals(0, observed.stream.status().gaps());
                assertEquals(0, observed.plane.status().unreadable());
            } finally {
                source.close();
            }
        } finally {
            publisher.destroyForcibly();
        }
    }

    /** Where its events are to be had, as it has registered it; empty until then. */
    private static String address(Path registrations) {
        try (Stream<Path> files = Files.walk(registrations.resolve("v1/event_channels"))) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                final Matcher address = ADDRESS.matcher(Files.readString(file));
                if (address.find()) {
                    return address.group();
                }
            }
            return "";
        } catch (IOException e) {
            return ""; // it is writing it
        }
    }

    @Test
    void itsIndexReadsWhatIsWrittenHere() throws Exception {
        final long[] locals = new long[2];
        BlockHasher.localHashes(
                new int[] {1, 2, 3, 4, 5, 6, 7, 8}, 0, 8, 4, BlockHasher.BASE_SEED, locals);
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {-3, 102}, locals, 2);
        batch.addStored(false, 102, new long[] {103}, new long[] {-1}, 1);
        batch.addStored(true, 0, new long[] {7}, new long[] {70}, 1);
        batch.addRemoved(new long[] {7}, 1);

        final Process index =
                DynamoRuntime.start(runtime, program("third_party_index.py"), Map.of());
        try (BufferedWriter out = index.outputWriter(StandardCharsets.UTF_8)) {
            long id = 1;
            for (int at = batch.first(); at >= 0; at = batch.next(at)) {
                final String event =
                        new String(
                                RouterEventWriter.json(7, 0, id++, batch, at),
                                StandardCharsets.UTF_8);
                // its index takes the inner part, without the worker
                out.write(event.substring(event.indexOf("{\"event_id"), event.length() - 1));
                out.newLine();
            }
        }
        final List<String> lines = index.inputReader(StandardCharsets.UTF_8).lines().toList();
        assertEquals(0, index.waitFor(), () -> "it said " + lines);
        final List<Long> held = new ArrayList<>();
        for (String line : lines) {
            if (line.startsWith("holds ")) {
                held.addAll(stored(line.substring(6).getBytes(StandardCharsets.UTF_8)));
            }
        }
        held.sort(null);
        assertEquals(List.of(-3L, 102L, 103L), held);
    }

    /** Engine hashes that an event of its dump stores. */
    private static List<Long> stored(byte[] event) {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        new RouterEventDecoder().decode(event, 0, event.length, batch);
        final long[] names = new long[batch.count(batch.first())];
        batch.engineHashes(batch.first(), names);
        return LongStream.of(names).boxed().toList();
    }
}
