package io.kvasir.gateway.disagg;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * Opens another one with the first prefill, on a thread of its own: a gateway without prefill
 * workers loads no library, and no request waits for one. What is held meanwhile is handed over.
 */
final class LazyBlockRelease implements BlockRelease {
    private static final Logger LOG = LoggerFactory.getLogger(BlockRelease.class);
    private static final BlockReleaseCounts NONE = new BlockReleaseCounts(0, 0, 0, Map.of(), 0);

    private final Supplier<BlockRelease> open;
    private final long leaseNs;
    private CompletableFuture<BlockRelease> opened; // guarded by this; null before the first hold
    private boolean closed; // guarded by this

    /** A prefill that is held before the release is open, and its being handed over to that. */
    private record Waiting(PrefillBlocks blocks, CompletableFuture<Void> handedOver)
            implements PrefillBlocks.Held {
        @Override
        public void fetched() {
            blocks.fetched();
        }

        @Override
        public void free() {
            blocks.free();
        }
    }

    /**
     * Makes one that is not open.
     *
     * @param open may block; called once at most
     * @param leaseNs how long engines hold blocks, where it fails
     */
    LazyBlockRelease(Supplier<BlockRelease> open, long leaseNs) {
        this.open = open;
        this.leaseNs = leaseNs;
    }

    @Override
    public PrefillBlocks.Held hold(KvTransferParams params) {
        final CompletableFuture<BlockRelease> ready = opened();
        if (ready.isDone()) {
            return ready.join().hold(params);
        }
        final PrefillBlocks blocks = new PrefillBlocks();
        return new Waiting(
                blocks, ready.thenAccept(release -> blocks.answered(release.hold(params))));
    }

    private synchronized CompletableFuture<BlockRelease> opened() {
        if (opened == null) {
            opened = new CompletableFuture<>();
            if (closed) {
                opened.complete(
                        new LeaseOnly(
                                LeaseReason.CLOSING,
                                leaseNs,
                                new ReleaseCounters(),
                                System::nanoTime));
            } else {
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-block-release-open")
                        .start(() -> open(opened));
            }
        }
        return opened;
    }

    private void open(CompletableFuture<BlockRelease> into) {
        BlockRelease release;
        try {
            release = open.get();
        } catch (RuntimeException | LinkageError e) {
            LOG.error("prefill workers are not notified; their leases free the blocks", e);
            release =
                    new LeaseOnly(
                            LeaseReason.NO_LIBRARY,
                            leaseNs,
                            new ReleaseCounters(),
                            System::nanoTime);
        }
        into.complete(release);
    }

    private synchronized CompletableFuture<BlockRelease> openedOrNull() {
        return opened;
    }

    @Override
    public BlockReleaseCounts counts() {
        final CompletableFuture<BlockRelease> ready = openedOrNull();
        return ready == null || !ready.isDone() ? NONE : ready.join().counts();
    }

    @Override
    public void close() {
        final CompletableFuture<BlockRelease> ready;
        synchronized (this) {
            closed = true;
            ready = opened;
        }
        if (ready != null) {
            ready.join().close();
        }
    }
}
