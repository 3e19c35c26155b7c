package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.RegistryException;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;

/** What is said of a NATS server that cannot be reached has its address, once, and the reason. */
class UnreachableNatsTest {
    private final NatsAccess access = NatsAccess.of("nats://127.0.0.1:" + freePort());

    private static int freePort() {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return free.getLocalPort();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private void assertNamedOnce(Throwable failure) {
        final String said = failure.getMessage();
        final String address = access.address();
        assertTrue(said.contains(address), said);
        assertEquals(said.indexOf(address), said.lastIndexOf(address), said);
        assertTrue(said.contains("Connection refused"), said);
    }

    @Test
    void itsAddressIsNamedOnce() throws Exception {
        final EventSubjects names = new EventSubjects("ns", "c", "e", "t");
        assertNamedOnce(
                assertThrows(
                        IOException.class, () -> new NatsEventTransport(access, names).close()));
        try (EventStream stream = new EventStream(access, names, 1)) {
            assertNamedOnce(assertThrows(IOException.class, stream::state));
        }
        try (NatsStore store = new NatsStore(access, "b", Duration.ofSeconds(10));
                NatsStateStore state =
                        new NatsStateStore(access, "b", new LeaseLock(store, "lock"))) {
            assertNamedOnce(assertThrows(RegistryException.class, () -> store.get("a")));
            assertNamedOnce(assertThrows(IOException.class, state::list));
        }
    }
}
