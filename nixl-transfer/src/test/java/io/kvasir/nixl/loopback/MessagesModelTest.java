package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Ends that send messages to each other, leave, come back, end, and start again under the same
 * name: what was sent to an end that lives on arrives there once, in order, and nothing else.
 */
class MessagesModelTest {
    private static final int TRIALS = Trials.of(30, 500);
    private static final int STEPS = 300;
    private static final int ENDS = 4;

    @Tag("trials")
    @Test
    void whatIsSentToALivingEndArrivesOnceInOrder() throws Exception {
        final long seed = Seeds.next("MessagesModelTest");
        final Path folder = Loopbacks.folder();
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial), folder)) {
                try {
                    model.run();
                } catch (AssertionError | RuntimeException e) {
                    throw new AssertionError(
                            "-Dseed=" + (seed + trial) + "\n" + String.join("\n", model.trace), e);
                }
            }
        }
        Loopbacks.deleteEmpty(folder);
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        final List<String> trace = new ArrayList<>();
        private final Random random;
        private final Path folder;
        private final LoopbackTransport[] ends = new LoopbackTransport[ENDS];
        private final boolean[][] connected = new boolean[ENDS][ENDS]; // by sender, to this start
        private final List<Map<String, List<String>>> sent = new ArrayList<>(); // by receiver
        private final List<Map<String, List<String>>> received = new ArrayList<>();
        private final int[] starts = new int[ENDS];
        private int messages;

        Model(Random random, Path folder) {
            this.random = random;
            this.folder = folder;
            for (int end = 0; end < ENDS; end++) {
                sent.add(new HashMap<>());
                received.add(new HashMap<>());
                start(end);
            }
        }

        @Override
        public void close() {
            for (LoopbackTransport end : ends) {
                end.close();
            }
        }

        private void start(int end) {
            ends[end] = new LoopbackTransport("end" + end, Loopbacks.config(folder));
            starts[end]++;
            sent.get(end).clear();
            received.get(end).clear();
            for (int other = 0; other < ENDS; other++) {
                connected[other][end] = false;
                connected[end][other] = false;
            }
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                final int one = random.nextInt(ENDS);
                final int other = (one + 1 + random.nextInt(ENDS - 1)) % ENDS;
                switch (random.nextInt(12)) {
                    case 0 -> restart(one);
                    case 1 -> {
                        trace.add(one + " leaves " + other);
                        ends[one].disconnect("end" + other);
                        connected[one][other] = false;
                    }
                    case 2, 3 -> poll(one);
                    case 4, 5 -> connect(one, other);
                    default -> send(one, other);
                }
            }
            for (int end = 0; end < ENDS; end++) {
                poll(end);
                assertEquals(sent.get(end), received.get(end), "end " + end);
            }
        }

        /** Not often: what waits at an end goes with it. */
        private void restart(int end) {
            if (random.nextInt(4) == 0) {
                trace.add("restart " + end);
                ends[end].close();
                start(end);
            }
        }

        private void connect(int one, int other) {
            trace.add(one + " connects to " + other);
            try {
                ends[one].connect(ends[other].metadata());
            } catch (KvTransportException e) { // lanes of ends that have left hold messages
                assertEquals(KvTransportException.Kind.CAPACITY, e.kind(), e::getMessage);
                poll(other);
            }
            assertEquals("end" + other, ends[one].connect(ends[other].metadata()));
            connected[one][other] = true;
        }

        private void send(int one, int other) {
            final String message =
                    starts[one] + ":" + messages++ + "x".repeat(random.nextInt(3_000));
            try {
                ends[one].send("end" + other, message.getBytes(StandardCharsets.UTF_8));
            } catch (KvTransportException e) {
                trace.add(one + " cannot send to " + other + ": " + e.kind());
                assertTrue(
                        !connected[one][other] || e.kind() == KvTransportException.Kind.CAPACITY,
                        e::getMessage);
                return;
            }
            assertTrue(connected[one][other], () -> one + " has sent to " + other);
            trace.add(one + " -> " + other + ": " + message.length());
            add(sent.get(other), "end" + one, message);
        }

        private void poll(int end) {
            trace.add("poll " + end);
            ends[end].notifications(
                    (peer, message) ->
                            add(
                                    received.get(end),
                                    peer,
                                    new String(
                                            message.toArray(ValueLayout.JAVA_BYTE),
                                            StandardCharsets.UTF_8)));
        }

        /** In order are those of one start of an end. */
        private static void add(Map<String, List<String>> to, String peer, String message) {
            to.computeIfAbsent(
                            peer + " " + message.substring(0, message.indexOf(':')),
                            _ -> new ArrayList<>())
                    .add(message);
        }
    }
}
