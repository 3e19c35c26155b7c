package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.Transports;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * The first process of a test: moves random sets of blocks to and from a {@link TransferPeer}, or a
 * plain Python agent, and checks every byte; the Python agent also moves blocks to and from this
 * one. Run as a program, since a library with threads of its own is not to be loaded into the JVM
 * of the tests.
 */
final class TwoProcesses implements AutoCloseable {
    private static final int MOST_BLOCKS = 32;

    private final KvTransport transport;
    private final MemorySegment pool = TransferPeer.pool();
    private final KvRegion region = TransferPeer.region(pool.address(), "own");
    private final Random random;
    private final Process peerProcess;
    private final String peer;
    private final long own;
    private final long remote;
    private long version;
    private String answer = "";

    TwoProcesses(String kind, long seed, List<String> python) throws IOException {
        random = new Random(seed);
        transport = Transports.create(kind, "first-" + seed);
        transport.register(List.of(region));
        final String peerName = "second-" + seed;
        peerProcess = python.isEmpty() ? start(kind, peerName) : start(python, peerName);
        final BufferedReader out =
                new BufferedReader(
                        new InputStreamReader(
                                peerProcess.getInputStream(), StandardCharsets.US_ASCII));
        final long base = Long.parseLong(out.readLine());
        peer = transport.connect(Base64.getDecoder().decode(out.readLine()));
        final String metadata =
                Base64.getEncoder().encodeToString(transport.metadata())
                        + "\n"
                        + pool.address()
                        + "\n";
        peerProcess.getOutputStream().write(metadata.getBytes(StandardCharsets.US_ASCII));
        peerProcess.getOutputStream().flush();
        own = transport.prepare(null, Descriptors.ofBlocks(List.of(region)));
        remote =
                transport.prepare(
                        peer, Descriptors.ofBlocks(List.of(TransferPeer.region(base, "peer"))));
    }

    /**
     * Moves sets of blocks.
     *
     * @param args kind of transport, number of sets, seed, and the command of a Python agent
     */
    public static void main(String[] args) throws IOException {
        final int sets = Integer.parseInt(args[1]);
        final List<String> python = List.of(args).subList(3, args.length);
        try (TwoProcesses test = new TwoProcesses(args[0], Long.parseLong(args[2]), python)) {
            final int ways = python.isEmpty() ? 2 : 4;
            for (int i = 0; i < sets; i++) {
                switch (test.random.nextInt(ways)) {
                    case 0 -> test.read();
                    case 1 -> test.write();
                    case 2 -> test.isRead();
                    default -> test.isWritten();
                }
            }
        }
        System.out.println("sets " + sets);
    }

    private void read() {
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final int[] from = distinct(count, 0, TransferPeer.READ_ONLY);
        final int[] to = distinct(count, 0, TransferPeer.BLOCKS);
        move(KvTransport.Operation.READ, to, from, count, null);
        for (int i = 0; i < count; i++) {
            check(Pattern.holds(pool, region, to[i], 0, from[i]), "block " + from[i] + " read");
        }
    }

    private void write() {
        version++;
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final int[] from = distinct(count, 0, TransferPeer.BLOCKS);
        final int[] to = distinct(count, TransferPeer.READ_ONLY, TransferPeer.BLOCKS);
        final StringBuilder message = new StringBuilder("W ").append(version);
        for (int i = 0; i < count; i++) {
            Pattern.fill(pool, region, from[i], version);
            message.append(' ').append(to[i]).append(' ').append(from[i]);
        }
        final byte[] notification = message.toString().getBytes(StandardCharsets.US_ASCII);
        move(KvTransport.Operation.WRITE, from, to, count, notification);
        awaitAnswer();
    }

    /** The peer reads own blocks, and checks them. */
    private void isRead() {
        version++;
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final int[] own = distinct(count, 0, TransferPeer.BLOCKS);
        final int[] to = distinct(count, TransferPeer.READ_ONLY, TransferPeer.BLOCKS);
        final StringBuilder message = new StringBuilder("R ").append(version);
        for (int i = 0; i < count; i++) {
            Pattern.fill(pool, region, own[i], version);
            message.append(' ').append(to[i]).append(' ').append(own[i]);
        }
        transport.send(peer, message.toString().getBytes(StandardCharsets.US_ASCII));
        awaitAnswer();
    }

    /** The peer writes into own blocks; they are whole when its notification comes. */
    private void isWritten() {
        version++;
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final int[] own = distinct(count, 0, TransferPeer.BLOCKS);
        final int[] from = distinct(count, TransferPeer.READ_ONLY, TransferPeer.BLOCKS);
        final StringBuilder message = new StringBuilder("S ").append(version);
        for (int i = 0; i < count; i++) {
            message.append(' ').append(own[i]).append(' ').append(from[i]);
        }
        transport.send(peer, message.toString().getBytes(StandardCharsets.US_ASCII));
        awaitAnswer();
        for (int block : own) {
            check(Pattern.holds(pool, region, block, version, block), "block " + block);
        }
    }

    private void awaitAnswer() {
        final long deadline = System.nanoTime() + TransferPeer.PATIENCE_NS;
        while (!answer.equals("OK " + version)) {
            check(!answer.startsWith("BAD"), answer);
            check(System.nanoTime() < deadline, "an answer to message " + version);
            transport.notifications((sender, bytes) -> answer = TransferPeer.text(bytes));
        }
    }

    private void move(
            KvTransport.Operation operation,
            int[] local,
            int[] other,
            int count,
            byte[] notification) {
        final long request =
                transport.request(operation, own, local, remote, other, count, notification);
        final long deadline = System.nanoTime() + TransferPeer.PATIENCE_NS;
        KvTransport.Progress progress = transport.post(request);
        while (progress == KvTransport.Progress.RUNNING) {
            check(System.nanoTime() < deadline, operation + " of " + count + " blocks");
            progress = transport.status(request);
        }
        if (progress == KvTransport.Progress.FAILED) {
            throw new IllegalStateException(transport.failure(request));
        }
        check(transport.release(request), "release of a finished request");
    }

    private int[] distinct(int count, int from, int end) {
        return random.ints(from, end).distinct().limit(count).toArray();
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("not as it should be: " + what);
        }
    }

    static Process start(String kind, String name) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-Xmx128m",
                        "-XX:+UseSerialGC",
                        "-XX:-CreateCoredumpOnCrash",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TransferPeer.class.getName(),
                        kind,
                        name));
        return start(command);
    }

    private static Process start(List<String> python, String name) throws IOException {
        final List<String> command = new ArrayList<>(python);
        command.add(name);
        return start(command);
    }

    private static Process start(List<String> command) throws IOException {
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        return builder.start();
    }

    @Override
    public void close() throws IOException {
        peerProcess.getOutputStream().close();
        transport.close();
        try {
            check(peerProcess.waitFor(1, TimeUnit.MINUTES), "end of the peer");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            peerProcess.destroyForcibly();
        }
        check(peerProcess.exitValue() == 0, "exit " + peerProcess.exitValue() + " of the peer");
    }
}
