package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What NIXL refuses to take back is taken back later, or is no obstacle to the rest. */
class FailedReturnsTest {
    private static final KvLayout LAYOUT = KvLayout.of(KvLayout.Order.LAYER_MAJOR, 4, 2, 4096);

    private final FakeNixl fake = FakeNixl.get();
    private final long handlesBefore = fake.liveHandles();
    private final KvPool pool = KvPool.allocate(LAYOUT);
    private final KvTransport transport = fake.transport("returns");

    @BeforeEach
    void register() {
        transport.register(pool.regions());
    }

    @AfterEach
    void nothingIsLeft() {
        fake.heal();
        transport.close();
        pool.close();
        assertEquals(handlesBefore, fake.liveHandles());
    }

    private static Kind refused(Runnable call) {
        return assertThrows(KvTransportException.class, call::run).kind();
    }

    @Test
    void memoryThatIsNotDeregisteredStaysRegistered() {
        fake.failReturns("returns", 1);
        assertEquals(Kind.FAILED, refused(() -> transport.deregister(pool.regions())));
        assertEquals(Kind.INVALID, refused(() -> transport.register(pool.regions())));
        transport.deregister(pool.regions());
        assertEquals(Kind.INVALID, refused(() -> transport.deregister(pool.regions())));
    }

    @Test
    void aListThatIsNotReleasedDoesNotKeepTheTransportOpen() {
        transport.prepare(null, pool.descriptors());
        transport.prepare(null, pool.descriptors());
        fake.failReturns("returns", 1);
        assertDoesNotThrow(transport::close);
    }

    @Test
    void aCancelledRequestIsReleasedWhateverBecomesOfItsHandle() {
        final KvTransport peer = fake.transport("peer");
        peer.register(pool.regions());
        transport.connect(peer.metadata());
        final long own = transport.prepare(null, pool.descriptors());
        final long remote = transport.prepare("peer", pool.descriptors());
        final int[] first = {0};
        final long request =
                transport.request(
                        KvTransport.Operation.READ, own, first, remote, first, 0, 1, null);
        fake.failReturns(null, 1);
        assertTrue(transport.release(request));
        fake.heal();
        transport.releaseList(own); // no request holds it
        transport.releaseList(remote);
        peer.close();
    }
}
