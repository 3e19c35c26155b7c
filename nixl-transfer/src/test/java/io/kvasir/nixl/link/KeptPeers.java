package io.kvasir.nixl.link;

import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.RecordOwner;
import io.kvasir.nixl.exchange.zmq.SideChannelExchange;
import io.kvasir.nixl.link.ManagedLink.Linked;
import io.kvasir.nixl.link.ManagedLink.State;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.Signals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps a link to a {@link PublishedPeer} that is killed, stopped, or both, over and over, and
 * pulls its blocks whenever it can: transfers must resume each time with the bytes of the present
 * incarnation, and in between be refused by name.
 */
public final class KeptPeers implements AutoCloseable {
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final long DEADLINE_NS = 1_000_000_000L;
    private static final int MOST_BLOCKS = 16;
    private static final int MOST_MILLIS_BEFORE = 300;

    private final String kind;
    private final Path folder;
    private final Random random;
    private final KvPool pool;
    private final TransferEngine engine;
    private final LocalBlocks own;
    private final SideChannelExchange exchange =
            new SideChannelExchange(PublishedPeer.HOST, 0, PublishedPeer.CONFIG);
    private final LinkManager manager;
    private final ManagedLink link;
    private final int port = FreePorts.run(1); // of one peer after the other: none else gets it
    private Process peer;
    private long incarnation;
    private long refused;
    private long failed;
    private long done;

    private KeptPeers(String kind, long seed, Path folder) {
        this.kind = kind;
        this.folder = folder;
        random = new Random(seed);
        final KvTransport transport = PublishedPeer.transport(kind, "survivor-" + seed, folder);
        pool = PublishedPeer.pool(transport);
        engine = PublishedPeer.engine(transport, pool);
        own = engine.local(pool.descriptors()).join();
        manager = LinkManager.start(exchange, engine, LinkConfig.DEFAULT);
        link = manager.keep(PublishedPeer.NAME, "test", (kept, state, why) -> {});
    }

    /**
     * Runs rounds: of three, one kills, one stops and continues, one stops and kills.
     *
     * @param args kind of transport, number of rounds, seed, folder
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        final int rounds = Integer.parseInt(args[1]);
        try (KeptPeers test = new KeptPeers(args[0], Long.parseLong(args[2]), Path.of(args[3]))) {
            test.startPeer();
            test.pullUntilItWorks("at first", System.nanoTime());
            int resumed = 0;
            for (int i = 0; i < rounds; i++) {
                test.pullFor(test.random.nextInt(MOST_MILLIS_BEFORE));
                switch (i % 3) {
                    case 0 -> test.kill();
                    case 1 -> test.stopAndContinue();
                    default -> test.stopAndKill();
                }
                resumed++;
            }
            System.out.println(
                    "rounds "
                            + rounds
                            + " resumed "
                            + resumed
                            + " transfers "
                            + test.done
                            + " failed "
                            + test.failed
                            + " refused "
                            + test.refused
                            + " handshakes "
                            + test.link.handshakes());
            test.endsClean(rounds);
        }
    }

    private void startPeer() throws IOException {
        incarnation++;
        peer =
                RecordOwner.start(
                        PublishedPeer.class,
                        List.of(
                                kind,
                                Long.toString(incarnation),
                                Integer.toString(port),
                                folder.toString()));
        final String line = peer.inputReader(StandardCharsets.US_ASCII).readLine();
        check(line != null && Integer.parseInt(line) == port, "a peer that runs");
        exchange.know(PublishedPeer.HOST, port);
    }

    private void kill() throws IOException, InterruptedException {
        final long startNs = System.nanoTime();
        peer.destroyForcibly().waitFor();
        startPeer();
        pullUntilItWorks("killed", startNs);
    }

    private void stopAndKill() throws IOException, InterruptedException {
        Signals.stop(peer);
        pullFor(random.nextInt(MOST_MILLIS_BEFORE));
        kill();
    }

    private void stopAndContinue() throws IOException, InterruptedException {
        Signals.stop(peer);
        final long deadlineNs = System.nanoTime() + PATIENCE_NS;
        final long refusedBefore = refused;
        while (refused == refusedBefore) {
            pull();
            check(System.nanoTime() - deadlineNs < 0, "a peer that is silent is lost, and refused");
        }
        final long startNs = System.nanoTime();
        Signals.goOn(peer);
        pullUntilItWorks("continued", startNs);
    }

    private void pullFor(int millis) {
        final long endNs = System.nanoTime() + Duration.ofMillis(millis).toNanos();
        while (System.nanoTime() - endNs < 0) {
            pull();
        }
    }

    private void pullUntilItWorks(String after, long startNs) {
        final long readyNs = System.nanoTime();
        while (!pull()) {
            check(
                    System.nanoTime() - readyNs < PATIENCE_NS,
                    "transfers after it was " + after + ": " + link);
        }
        final long nowNs = System.nanoTime();
        System.out.println(
                after
                        + ": blocks again after "
                        + (nowNs - startNs) / 1_000_000
                        + " ms, "
                        + (nowNs - readyNs) / 1_000_000
                        + " ms after the peer was ready");
    }

    /** Pulls some blocks; true if they have come from the present incarnation. */
    private boolean pull() {
        final Linked linked;
        try {
            linked = link.linked();
        } catch (KvTransportException e) {
            check(e.getMessage().contains(PublishedPeer.NAME), e.getMessage());
            refused++;
            LockSupport.parkNanos(100_000);
            return false;
        }
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        final int[] from = random.ints(count, 0, PublishedPeer.BLOCKS).toArray();
        final Transfer transfer = new Transfer().pull(own, linked.link());
        for (int i = 0; i < count; i++) {
            transfer.add(i, from[i]);
        }
        check(
                engine.submit(transfer.deadlineNs(System.nanoTime() + DEADLINE_NS)),
                "room for a transfer");
        final long deadlineNs = System.nanoTime() + PATIENCE_NS;
        while (!transfer.state().isEnd()) {
            check(System.nanoTime() - deadlineNs < 0, "an end of a transfer");
            LockSupport.parkNanos(10_000);
        }
        if (transfer.state() != Transfer.State.DONE) {
            check(transfer.failure() != null, "a name for " + transfer.state());
            failed++;
            return false;
        }
        for (int i = 0; i < count; i++) {
            check(
                    Loopbacks.isFilled(
                            pool.block(pool.regions().getFirst(), i),
                            PublishedPeer.seed(linked.record().incarnation(), from[i])),
                    "bytes of block " + from[i] + " of " + linked.record());
        }
        done++;
        return linked.record().incarnation() == incarnation;
    }

    private void endsClean(int rounds) throws InterruptedException, IOException {
        check(link.handshakes() > rounds, "a handshake each round: " + link.handshakes());
        peer.getOutputStream().close();
        check(peer.waitFor() == 0, "an end of the peer: " + peer.exitValue());
        manager.close();
        check(link.state() == State.CLOSED, link.toString());
        check(engine.stuckRequests() == 0, "requests that could not be given up");
        try {
            engine.call(t -> t.prepare(PublishedPeer.NAME, pool.descriptors())).join();
            check(false, "a peer that is forgotten");
        } catch (CompletionException e) {
            check(e.getCause() instanceof KvTransportException, e.toString());
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("not as it should be: " + what);
        }
    }

    @Override
    public void close() {
        if (peer != null) {
            peer.destroyForcibly();
        }
        manager.close();
        exchange.close();
        engine.close();
        pool.close();
    }
}
