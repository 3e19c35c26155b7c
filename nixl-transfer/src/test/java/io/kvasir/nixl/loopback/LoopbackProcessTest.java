package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Two JVMs: the child is {@link LoopbackChild}. */
class LoopbackProcessTest {
    private static final KvLayout LAYOUT = LoopbackChild.LAYOUT;
    private static final int BLOCKS = LAYOUT.groups().getFirst().blocks();
    private static final int COPIES = 1_500;
    private static final int MANY_COPIES = 10_000;
    private static final int KILLS = 7;
    private static final HexFormat HEX = HexFormat.of();

    private final long seed = Long.getLong("seed", System.nanoTime());
    private final Random random = new Random(seed);
    private final int[] shuffled = new int[BLOCKS];

    private Path folder;
    private LoopbackTransport transport;
    private KvPool pool;
    private Process process;
    private long own;
    private long remote;
    private long unsharedBase;
    private long answers;
    private boolean good;

    @BeforeEach
    void open() throws IOException {
        System.out.println("seed: " + seed);
        folder = Loopbacks.folder();
        transport = new LoopbackTransport("parent", patient(Loopbacks.config(folder)));
        pool = transport.pool(LAYOUT);
        transport.register(pool.regions());
        own = transport.prepare(null, pool.descriptors());
        Arrays.setAll(shuffled, block -> block);
    }

    @AfterEach
    void close() throws IOException, InterruptedException {
        if (process != null) {
            process.destroyForcibly().waitFor();
        }
        transport.close();
        pool.close();
        new LoopbackTransport("sweeper", Loopbacks.config(folder)).close();
        Loopbacks.deleteEmpty(folder);
    }

    /** A child that gets no time for a moment is not one that takes no messages. */
    private static LoopbackConfig patient(LoopbackConfig config) {
        return new LoopbackConfig(
                config.folder(),
                config.maxPeers(),
                config.maxRegions(),
                config.maxLists(),
                config.maxRequests(),
                config.inboxBytes(),
                config.chunkBytes(),
                config.livenessInterval(),
                Duration.ofNanos(Loopbacks.DEADLINE_NS));
    }

    private void start(String mode) throws IOException {
        process =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-ea",
                                "-Xmx128m",
                                "-XX:+UseSerialGC",
                                "-XX:TieredStopAtLevel=1",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                LoopbackChild.class.getName(),
                                folder.toString(),
                                mode)
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        final Writer out = process.outputWriter(StandardCharsets.UTF_8);
        out.write(HEX.formatHex(transport.metadata()) + "\n" + pool.base() + "\n");
        out.flush();
    }

    private void connect() throws IOException {
        final BufferedReader in = process.inputReader(StandardCharsets.UTF_8);
        final String metadata = in.readLine();
        assertNotNull(metadata, "the child has ended");
        final long base = Long.parseLong(in.readLine());
        unsharedBase = Long.parseLong(in.readLine());
        assertEquals("child", transport.connect(HEX.parseHex(metadata)));
        remote = transport.prepare("child", Descriptors.ofBlocks(LAYOUT.regions(base)));
    }

    /** Different blocks in a random order. */
    private int[] someBlocks(int count) {
        for (int i = 0; i < count; i++) {
            final int other = i + random.nextInt(BLOCKS - i);
            final int block = shuffled[other];
            shuffled[other] = shuffled[i];
            shuffled[i] = block;
        }
        return Arrays.copyOf(shuffled, count);
    }

    private long request(Operation operation, int[] local, int[] theirs, byte[] message) {
        final int[] localIndices = LAYOUT.indices(0, local, 0, LoopbackChild.LAYERS);
        final int[] indices = LAYOUT.indices(0, theirs, 0, LoopbackChild.LAYERS);
        return transport.request(
                operation, own, localIndices, remote, indices, indices.length, message);
    }

    @Test
    void randomCopiesArriveInBothDirections() throws IOException {
        copy(COPIES);
    }

    @Tag("integration") // takes seconds
    @Test
    void tenThousandRandomCopiesArriveInBothDirections() throws IOException {
        copy(MANY_COPIES);
    }

    private void copy(int copies) throws IOException {
        start("answer");
        connect();
        final long[] theirs = new long[BLOCKS]; // seeds of the child's blocks; 0: not yet filled
        for (int round = 1; round <= copies; round++) {
            final int count = 1 + random.nextInt(random.nextInt(10) == 0 ? 32 : 4);
            final int[] local = someBlocks(count);
            final int[] remotes = someBlocks(count);
            final boolean read = random.nextBoolean();
            final ByteBuffer message = ByteBuffer.allocate(9 + 12 * count);
            message.putLong(round).put(read ? LoopbackChild.FILL : LoopbackChild.CHECK);
            final long[] expected = new long[count];
            for (int i = 0; i < count; i++) {
                expected[i] = theirs[remotes[i]];
                theirs[remotes[i]] = random.nextLong() | 1;
                message.putInt(remotes[i]).putLong(theirs[remotes[i]]);
                if (!read) {
                    LoopbackChild.fill(pool, local[i], theirs[remotes[i]]);
                }
            }
            final long request =
                    request(
                            read ? Operation.READ : Operation.WRITE,
                            local,
                            remotes,
                            message.array());
            assertEquals(Progress.DONE, Loopbacks.end(transport, request));
            transport.release(request);
            for (int i = 0; read && i < count; i++) {
                assertTrue(
                        expected[i] == 0 || LoopbackChild.isFilled(pool, local[i], expected[i]),
                        "round " + round);
            }
            awaitAnswer(round);
        }
        assertEquals(copies, answers);
        assertEquals(
                0,
                Allocations.bytesPerRound(500, () -> transport.notifications((peer, bytes) -> {})),
                "the child's process is looked for at every call");
    }

    private void awaitAnswer(long round) {
        final long deadline = System.nanoTime() + Loopbacks.DEADLINE_NS;
        while (answers < round) {
            final int messages =
                    transport.notifications(
                            (peer, bytes) -> {
                                final ByteBuffer answer =
                                        ByteBuffer.wrap(bytes.toArray(ValueLayout.JAVA_BYTE));
                                assertEquals("child", peer);
                                assertEquals(round, answer.getLong());
                                good = answer.get() == 1;
                                answers++;
                            });
            assertTrue(good || messages == 0, "the child found other bytes in round " + round);
            assertTrue(System.nanoTime() < deadline, "no answer in round " + round);
            if (messages == 0) {
                LockSupport.parkNanos(1_000);
            }
        }
    }

    @Tag("integration") // starts JVMs
    @Test
    void aPeerThatIsKilledIsNamedAndAnotherTakesItsPlace()
            throws IOException, InterruptedException {
        start("flood");
        for (int round = 0; round < KILLS; round++) {
            connect();
            final Process victim = process;
            final int[] blocks = someBlocks(32);
            final long request = request(Operation.READ, blocks, blocks, new byte[100]);
            final long killAt = System.nanoTime() + random.nextInt(100) * 1_000_000L;
            boolean killed = false;
            final long deadline = System.nanoTime() + Loopbacks.DEADLINE_NS;
            Progress progress = transport.post(request);
            while (progress != Progress.FAILED) {
                assertTrue(System.nanoTime() < deadline, "the loss is not seen, round " + round);
                if (!killed && System.nanoTime() >= killAt) {
                    killed = true;
                    victim.destroyForcibly();
                    start("flood"); // comes up meanwhile, under the same name
                }
                progress =
                        progress == Progress.DONE
                                ? transport.post(request)
                                : transport.status(request);
                takeMessages();
            }
            final String failure = transport.failure(request);
            assertTrue(killed, "failed while its peer ran: " + failure);
            assertTrue(victim.waitFor(1, TimeUnit.MINUTES));
            assertTrue(failure.contains("peer child (pid " + victim.pid() + ")"), failure);
            Loopbacks.refused(
                    Kind.PEER_LOST, "is gone", () -> transport.send("child", new byte[1]));
            Loopbacks.refused(
                    Kind.PEER_LOST, "is gone", () -> request(Operation.READ, blocks, blocks, null));
            transport.release(request);
            transport.releaseList(remote);
        }
        connect();
        final long deadline = System.nanoTime() + Loopbacks.DEADLINE_NS;
        while (takeMessages() == 0) {
            assertTrue(System.nanoTime() < deadline, "the last child says nothing");
        }
        process.outputWriter(StandardCharsets.UTF_8).close();
        assertTrue(process.waitFor(1, TimeUnit.MINUTES));
        assertEquals(0, process.exitValue());
    }

    private int takeMessages() {
        return transport.notifications(
                (peer, bytes) -> {
                    assertEquals("child", peer);
                    assertEquals(1000, bytes.byteSize());
                    assertEquals(42, bytes.get(ValueLayout.JAVA_BYTE, 999));
                });
    }

    @Test
    void memoryOfAnotherProcessThatIsNotSharedIsNamed() throws IOException {
        start("answer");
        connect();

        Loopbacks.refused(
                Kind.INVALID,
                "LoopbackTransport.pool",
                () ->
                        transport.prepare(
                                "child", Descriptors.ofBlocks(LAYOUT.regions(unsharedBase))));
    }
}
