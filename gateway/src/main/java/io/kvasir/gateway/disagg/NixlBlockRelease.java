package io.kvasir.gateway.disagg;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.vllm.LeaseTerms;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmHandshake;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

/**
 * Notifies vLLM engines over NIXL. One thread of its own owns the NIXL agent; a handshake has a
 * thread while it lasts, since it blocks inside a selector, which would hold a carrier of virtual
 * threads.
 *
 * <p>A handshake goes to the host and port that the prefill worker's answer names: workers are
 * trusted, clients cannot write these fields.
 */
final class NixlBlockRelease implements BlockRelease {
    private static final Logger LOG = LoggerFactory.getLogger(BlockRelease.class);

    /** A lease that has less left than this is not counted on. */
    private static final long MARGIN_NS = TimeUnit.SECONDS.toNanos(1);

    /** How long {@link #close} waits for engines whose contact is not made yet. */
    private static final long CLOSE_NS = TimeUnit.SECONDS.toNanos(2);

    private static final long IDLE_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long WARNING_PAUSE_NS = TimeUnit.MINUTES.toNanos(1);

    /** The duty pauses and tries again itself. */
    private static final VllmHandshake.Patience ONE_ATTEMPT =
            new VllmHandshake.Patience(Duration.ofSeconds(3), 1, Duration.ZERO);

    private final ReleaseCounters counters = new ReleaseCounters();
    private final LeaseOnly unwatched;
    private final ReleaseDuty duty;
    private final Thread thread;
    private final long closeNs;
    private volatile boolean closing;
    private long nextWarningNs;

    /**
     * Starts it.
     *
     * @param transport closed by this; given to a thread of its own
     * @param leaseNs how long engines hold blocks, whole seconds counted
     */
    NixlBlockRelease(KvTransport transport, long leaseNs) {
        this(transport, new VllmHandshake(ONE_ATTEMPT, Optional.empty())::ask, leaseNs, CLOSE_NS);
    }

    /**
     * Starts it with other handshakes or another patience.
     *
     * @param transport closed by this; given to a thread of its own
     * @param ask asks all ranks of an engine; blocks
     * @param leaseNs how long engines hold blocks, whole seconds counted
     * @param closeNs how long {@link #close} waits for engines whose contact is not made yet
     */
    NixlBlockRelease(
            KvTransport transport,
            Function<KvTransferParams, VllmEngine> ask,
            long leaseNs,
            long closeNs) {
        this.closeNs = closeNs;
        unwatched = new LeaseOnly(LeaseReason.TOO_MANY, leaseNs, counters, System::nanoTime);
        thread = Thread.ofPlatform().daemon().name("kvasir-block-release").unstarted(this::run);
        duty =
                new ReleaseDuty(
                        transport,
                        ask,
                        handshake ->
                                Thread.ofPlatform()
                                        .daemon()
                                        .name("kvasir-block-release-handshake")
                                        .start(handshake),
                        new LeaseTerms(
                                Math.toIntExact(TimeUnit.NANOSECONDS.toSeconds(leaseNs)),
                                MARGIN_NS),
                        ReleaseDuty.Limits.DEFAULT,
                        counters,
                        () -> LockSupport.unpark(thread));
        thread.start();
    }

    @Override
    public PrefillBlocks.Held hold(KvTransferParams params) {
        if (closing) {
            return unwatched.hold(LeaseReason.CLOSING);
        }
        final Optional<WatchedPrefill> watched = duty.watch(params, System.nanoTime());
        return watched.isPresent() ? watched.get() : unwatched.hold(params);
    }

    private void run() {
        long closingSinceNs = 0;
        boolean ends = false;
        while (!ends || System.nanoTime() - closingSinceNs < closeNs) {
            if (closing && !ends) { // read before the work: what was freed before it is done by it
                closingSinceNs = System.nanoTime();
                ends = true;
            }
            try {
                duty.doWork(System.nanoTime());
            } catch (RuntimeException e) {
                warn(e);
            }
            if (ends && !duty.isFreeing()) {
                break;
            }
            LockSupport.parkNanos(this, duty.isIdle() ? IDLE_NS : ReleaseDuty.TICK_NS);
        }
        duty.close();
    }

    private void warn(RuntimeException e) {
        final long nowNs = System.nanoTime();
        if (nextWarningNs == 0 || nowNs - nextWarningNs >= 0) {
            nextWarningNs = nowNs + WARNING_PAUSE_NS;
            LOG.warn("blocks of prefills may be left to their leases", e);
        }
    }

    @Override
    public BlockReleaseCounts counts() {
        return counters.with(closing ? 0 : duty.held() + unwatched.held());
    }

    @Override
    public void close() {
        closing = true;
        LockSupport.unpark(thread);
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        unwatched.close();
    }
}
