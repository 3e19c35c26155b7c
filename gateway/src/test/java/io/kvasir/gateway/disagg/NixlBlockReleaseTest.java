package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.FakeNixl;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.vllm.VllmNotification;
import io.kvasir.nixl.vllm.VllmSideChannel;
import io.kvasir.router.disagg.PrefillBlocks;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Over the loopback library, with a prefill engine of this process. */
class NixlBlockReleaseTest {
    private static final long LEASE_NS = TimeUnit.SECONDS.toNanos(30);
    private static final String ENGINE = "engine-" + UUID.randomUUID();

    private final KvTransport prefill = transport();
    private final VllmSideChannel channel =
            new VllmSideChannel(
                    "127.0.0.1",
                    0,
                    "hash",
                    List.of(Prefills.metadata(ENGINE, prefill.metadata())),
                    System::nanoTime);
    private final BlockRelease release = new NixlBlockRelease(transport(), LEASE_NS);
    private final List<VllmNotification> received = new ArrayList<>();

    private static KvTransport transport() {
        return FakeNixl.get().transport(UUID.randomUUID().toString());
    }

    @AfterEach
    void close() {
        release.close();
        channel.close();
        prefill.close();
    }

    private PrefillBlocks.Held hold(String requestId) {
        return release.hold(Prefills.params(ENGINE, requestId, channel.port()));
    }

    private void await(String what, BooleanSupplier condition) {
        final long startNs = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - startNs < TimeUnit.MINUTES.toNanos(1), what);
            prefill.notifications((peer, message) -> received.add(VllmNotification.parse(message)));
            LockSupport.parkNanos(1_000_000);
        }
    }

    @Test
    void anEngineIsNotifiedOfBlocksThatNoDecodeFetches() {
        hold("fetched").fetched();
        hold("freed").free();
        await("the notification", () -> !received.isEmpty());
        assertEquals(List.of(new VllmNotification.Completion("freed", 1)), received);
        await("the counts", () -> release.counts().held() == 0);
        assertEquals(1, release.counts().fetched());
        assertEquals(1, release.counts().released());
    }

    @Test
    void whatIsToBeFreedWhenItIsClosedIsFreedFirst() {
        for (int round = 0; round < 200; round++) {
            final BlockRelease closed = patientRelease();
            final PrefillBlocks.Held open =
                    closed.hold(Prefills.params(ENGINE, "open", channel.port()));
            closed.hold(Prefills.params(ENGINE, "freed", channel.port())).free();
            closed.close();
            closed.close();
            await("the notification", () -> !received.isEmpty());
            assertEquals(List.of(new VllmNotification.Completion("freed", 1)), received);
            received.clear();
            open.free();
            closed.hold(Prefills.params(ENGINE, "late", channel.port())).free();
            final BlockReleaseCounts counts = closed.counts();
            assertEquals(1, counts.released());
            assertEquals(2, counts.left().get(LeaseReason.CLOSING));
            assertEquals(0, counts.held());
        }
    }

    private BlockRelease patientRelease() {
        return new NixlBlockRelease(
                transport(),
                params -> Prefills.engine(ENGINE, prefill.metadata()),
                LEASE_NS,
                TimeUnit.MINUTES.toNanos(1));
    }
}
