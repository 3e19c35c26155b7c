package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.Patient;
import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.DynamoRuntime;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;
import io.nats.client.JetStreamManagement;
import io.nats.client.api.StreamState;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * An old router's publisher is read, its index reads what is published here, its state is taken.
 */
@Tag("integration") // starts servers and fetches a package
class OldRouterTest {
    private static final int STORES = 1_000;
    private static final int FEW_STORES = 40;
    private static final int TRIES = 200;

    @RegisterExtension static final RunningNats NATS = new RunningNats();
    @TempDir static Path folder;

    private static Path runtime;
    private static EtcdServer etcd;

    private final String namespace = "ns_" + System.nanoTime();
    private final EventSubjects names = EventSubjects.kvEvents(namespace, "backend", "generate");
    private Process process;
    private BufferedReader output;

    @BeforeAll
    static void fetch() throws InterruptedException {
        try {
            runtime = DynamoRuntime.installOld();
            etcd = EtcdServer.in(EtcdServer.program(), folder);
            etcd.start();
        } catch (IOException e) {
            abort("skipped: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopEtcd() throws InterruptedException {
        if (etcd != null) {
            etcd.stop();
        }
    }

    @AfterEach
    void endProgram() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    private void start(String what, String... arguments) throws Exception {
        final List<String> all = new ArrayList<>(List.of(what, namespace, "backend"));
        all.addAll(List.of(arguments));
        process =
                DynamoRuntime.start(
                        runtime,
                        Path.of(OldRouterTest.class.getResource("/old_router.py").toURI()),
                        Map.of("NATS_SERVER", NATS.url(), "ETCD_ENDPOINTS", etcd.uri().toString()),
                        all.toArray(String[]::new));
        output = process.inputReader(StandardCharsets.UTF_8);
    }

    /** The rest of the next line of its output that begins with a word. */
    private String said(String word) throws IOException {
        final List<String> other = new ArrayList<>();
        String line = output.readLine();
        while (line != null && !line.startsWith(word)) {
            other.add(line);
            line = output.readLine();
        }
        return line == null ? fail("it ended: " + other) : line.substring(word.length()).strip();
    }

    private static Set<Long> odd(int stores) {
        return LongStream.rangeClosed(1, stores)
                .filter(i -> i % 2 == 1)
                .boxed()
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void everyEventOfItsPublisherIsRead() throws Exception {
        try (ObservedPlane observed = new ObservedPlane()) {
            final JetStreamEventSource source =
                    new JetStreamEventSource(
                            Patient.access(NATS.url()), names, null, observed.plane);
            try {
                start("publish", Integer.toString(STORES));
                said("published");
                // the number of its worker is its own choice
                observed.await(() -> observed.plane.unknownWorkers().size() == 1, "its worker");
                observed.plane.register(
                        observed.plane.unknownWorkers().getFirst().workerId(), 0, observed.other);
                observed.await(() -> Set.copyOf(observed.held()).equals(odd(STORES)), "blocks");
                observed.await(() -> observed.other.state() == IndexState.EXACT, "exact");
                assertEquals(STORES * 3L / 2, observed.other.status().lastSequence());
                assertEquals(0, observed.other.status().gaps());
                assertEquals(0, observed.plane.status().unreadable());
            } finally {
                source.close();
            }
        }
    }

    @Test
    void itsIndexReadsWhatIsPublishedHere() throws Exception {
        start("index");
        said("ready");
        final long worker = 7;
        try (Writer questions = process.outputWriter(StandardCharsets.UTF_8);
                JetStreamEventTransport transport =
                        new JetStreamEventTransport(
                                Patient.access(NATS.url()), names, StreamForm.OLD_EVENTS)) {
            final KvEventPublisher publisher = new KvEventPublisher(worker, 0, 4, transport);
            for (int i = 1; i <= FEW_STORES; i++) {
                final int[] tokens = new int[4];
                Arrays.fill(tokens, i);
                publisher.publishStored(tokens, new long[] {i}, null);
                if (i % 2 == 0) {
                    publisher.publishRemoved(i);
                }
            }
            publisher.publishStored(new int[4], new long[] {-3}, null);
            Eventually.until("the last block", () -> scores(questions, 0).equals("[[7, 1]]"));
            for (int i = 1; i <= FEW_STORES; i++) {
                assertEquals(i % 2 == 1 ? "[[7, 1]]" : "[]", scores(questions, i), "token " + i);
            }
        }
    }

    private String scores(Writer questions, int token) throws IOException {
        questions.write(token + "\n");
        questions.flush();
        return said("scores");
    }

    @Test
    void whatItHasSavedIsTakenOver() throws Exception {
        start("snapshot", Integer.toString(FEW_STORES));
        final long worker = Long.parseUnsignedLong(said("worker"));
        final Connection connection = Patient.connect(NATS.url());
        try {
            final JetStreamManagement management = connection.jetStreamManagement();
            Eventually.until(
                    "it purges what it saves",
                    () -> {
                        final StreamState stream =
                                management.getStreamInfo(names.stream()).getStreamState();
                        return stream.getLastSequence() == FEW_STORES * 3L / 2
                                && stream.getMsgCount() < stream.getLastSequence();
                    });
        } finally {
            connection.close();
        }
        // it purges before it saves: in between, nobody could know all
        Eventually.until("all that it knew", () -> isTakenOver(worker));
    }

    private boolean isTakenOver(long worker) throws Exception {
        try (PlaneReplica replica =
                new PlaneReplica(
                        NATS.url(),
                        names,
                        PlaneReplica.locks(NATS.url(), Duration.ofMinutes(1)),
                        PlaneReplica.past(1_000),
                        _ -> {},
                        worker)) {
            for (int tries = 0; tries < TRIES; tries++) {
                if (replica.held().get(worker).equals(odd(FEW_STORES))) {
                    return replica.snapshots.status().restoredBlocks() > 0;
                }
                Thread.sleep(20);
            }
            return false;
        }
    }
}
