package io.kvasir.nixl.engine;

import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.Transports;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Signals;

import org.agrona.concurrent.BackoffIdleStrategy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Pulls blocks from a peer that is killed, or stopped and killed, at random and then started anew.
 * Every transfer must end with a name; blocks whose transfer has ended must never change again.
 */
final class DyingPeers implements AutoCloseable {
    private static final int ROUND_MILLIS = 400;
    private static final int TRANSFERS = 8;
    private static final int BLOCKS_EACH = TransferPeer.BLOCKS / TRANSFERS;
    private static final long DEADLINE_NS = 300_000_000L;
    private static final byte QUIET = 0x5A;

    private final String kind;
    private final Random random;
    private final MemorySegment pool = TransferPeer.pool();
    private final KvRegion region = TransferPeer.region(pool.address(), "own");
    private final TransferEngine engine;
    private final LocalBlocks own;
    private final Map<State, Integer> ends = new EnumMap<>(State.class);
    private int restarts;

    private DyingPeers(String kind, long seed) {
        this.kind = kind;
        random = new Random(seed);
        engine =
                TransferEngine.start(
                        Transports.create(kind, "survivor-" + seed),
                        TransferConfig.DEFAULT,
                        new BackoffIdleStrategy(),
                        (peer, message) -> {},
                        Throwable::printStackTrace);
        engine.call(
                        transport -> {
                            transport.register(List.of(region));
                            return null;
                        })
                .join();
        own = engine.local(Descriptors.ofBlocks(List.of(region))).join();
    }

    /**
     * Runs rounds.
     *
     * @param args kind of transport, number of rounds, seed
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        final int rounds = Integer.parseInt(args[1]);
        try (DyingPeers test = new DyingPeers(args[0], Long.parseLong(args[2]))) {
            for (int i = 0; i < rounds; i++) {
                // the last one lives until enough was done, however slow the machine is
                test.round("mortal-" + args[2], i < rounds - 1 ? 0 : rounds + 1);
            }
            System.out.println("rounds " + rounds + " restarts " + test.restarts + " " + test.ends);
            check(test.engine.stuckRequests() == 0, "requests that could not be given up");
            check(test.ends.getOrDefault(State.DONE, 0) > rounds, "transfers that are done");
        }
    }

    private void round(String name, int done) throws IOException, InterruptedException {
        final Process process = TwoProcesses.start(kind, name);
        try {
            final BufferedReader out =
                    new BufferedReader(
                            new InputStreamReader(
                                    process.getInputStream(), StandardCharsets.US_ASCII));
            final long base = Long.parseLong(out.readLine());
            final byte[] metadata = Base64.getDecoder().decode(out.readLine());
            final KvLink link =
                    engine.link(
                                    metadata,
                                    Descriptors.ofBlocks(List.of(TransferPeer.region(base, "p"))))
                            .join();
            final String mine =
                    Base64.getEncoder().encodeToString(engine.call(KvTransport::metadata).join())
                            + "\n";
            process.getOutputStream().write(mine.getBytes(StandardCharsets.US_ASCII));
            process.getOutputStream().flush();
            pullUntilItIsGone(process, link, done);
            engine.unlink(link).join();
        } finally {
            process.destroyForcibly().waitFor();
        }
        restarts++;
    }

    /** It is killed at a random moment, but not before so many transfers of all are done. */
    private void pullUntilItIsGone(Process process, KvLink link, int done)
            throws IOException, InterruptedException {
        final long dies = System.nanoTime() + random.nextInt(ROUND_MILLIS) * 1_000_000L;
        final List<Transfer> transfers = new ArrayList<>();
        for (int i = 0; i < TRANSFERS; i++) {
            transfers.add(new Transfer());
        }
        boolean dead = false;
        int open = 0;
        while (!dead || open > 0) {
            open = 0;
            for (int i = 0; i < TRANSFERS; i++) {
                final Transfer transfer = transfers.get(i);
                if (transfer.state().isEnd()) {
                    count(transfer);
                    transfers.set(i, new Transfer());
                }
                if (transfers.get(i).state() == State.NEW && !dead) {
                    submit(transfers.get(i), i, link);
                }
                open += transfers.get(i).state() == State.NEW ? 0 : 1;
            }
            if (!dead && System.nanoTime() - dies > 0 && ends.getOrDefault(State.DONE, 0) >= done) {
                kill(process);
                dead = true;
            }
            Cores.giveWay();
        }
        staysQuiet();
    }

    private void submit(Transfer transfer, int i, KvLink link) {
        transfer.pull(own, link).deadlineNs(System.nanoTime() + DEADLINE_NS);
        for (int block = 0; block < BLOCKS_EACH; block++) {
            transfer.add(i * BLOCKS_EACH + block, random.nextInt(TransferPeer.READ_ONLY));
        }
        check(engine.submit(transfer), "room for a transfer");
    }

    private void kill(Process process) throws IOException, InterruptedException {
        if (random.nextBoolean()) { // a stopped one answers nothing and is not gone
            Signals.stop(process);
            Thread.sleep(random.nextInt(50));
        }
        process.destroyForcibly().waitFor();
    }

    private void count(Transfer transfer) {
        final State state = transfer.state();
        ends.merge(state, 1, Integer::sum);
        check(state == State.DONE || transfer.failure() != null, "a name for " + state);
    }

    /** All transfers have ended: what is written into their blocks now must stay. */
    private void staysQuiet() throws InterruptedException {
        pool.fill(QUIET);
        Thread.sleep(20);
        for (long i = 0; i < pool.byteSize(); i++) {
            check(pool.get(ValueLayout.JAVA_BYTE, i) == QUIET, "byte " + i + " was left alone");
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("not as it should be: " + what);
        }
    }

    @Override
    public void close() {
        engine.close();
    }
}
