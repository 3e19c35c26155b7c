package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nats.client.Connection;
import io.nats.client.ReconnectDelayHandler;
import io.nats.client.support.NatsUri;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

class NatsAccessTest {
    @TempDir Path folder;

    private static String refusal(Runnable call) {
        return assertThrows(IllegalArgumentException.class, call::run).getMessage();
    }

    @Test
    void whatCannotBeIsNamed() {
        final NatsAccess access = NatsAccess.of("nats://x");
        assertTrue(refusal(() -> NatsAccess.of(" ")).contains("no NATS server"));
        assertTrue(
                refusal(() -> new NatsAccess("nats://x", null, null, Duration.ofMillis(99)))
                        .contains("timeout=PT0.099S"));
        assertTrue(
                refusal(() -> access.withCredentials(Path.of("no/such.creds")))
                        .contains("no/such.creds"));
    }

    @Test
    void serversAreSplitAtCommas() {
        assertEquals(
                List.of("nats://a:1", "tls://b:2"),
                NatsAccess.of("nats://a:1, tls://b:2")
                        .options("x")
                        .build()
                        .getNatsServerUris()
                        .stream()
                        .map(NatsUri::toString)
                        .toList());
    }

    @Test
    void messagesAreWithoutUsersAndPasswords() {
        final NatsAccess access =
                NatsAccess.of("tls://user:secret@a:1,token@b,nats://c,user:secret@d:4,tls://u:@e");
        assertEquals("tls://a:1,b,nats://c,d:4,tls://e", access.address());
        assertFalse(access.toString().contains("secret"), access.toString());
    }

    @Test
    void theServerOfAConnectionIsNamedWithoutItsUser() {
        final AtomicReference<String> url = new AtomicReference<>("nats://user:secret@a:4222");
        final Connection connection =
                (Connection)
                        Proxy.newProxyInstance(
                                getClass().getClassLoader(),
                                new Class<?>[] {Connection.class},
                                (_, _, _) -> url.get());
        assertEquals("nats://a:4222", NatsAccess.addressOf(connection));
        url.set(null);
        assertNull(NatsAccess.addressOf(connection));
    }

    @Test
    void whatIsLostIsTriedLessOftenAndFromTheStartAfterItWasThere() {
        final ReconnectDelayHandler pauses =
                NatsAccess.of("nats://x").options("x").build().getReconnectDelayHandler();
        final long[] middlesMs = {200, 200, 400, 800, 1600, 2000, 2000};
        for (int round = 0; round < middlesMs.length; round++) {
            final long ms = pauses.getWaitTime(round).toMillis();
            final long middleMs = middlesMs[round];
            assertTrue(ms >= middleMs * 3 / 4 && ms <= middleMs * 5 / 4, round + ": " + ms + " ms");
        }
        assertTrue(pauses.getWaitTime(Long.MAX_VALUE).toMillis() <= 2500);
        assertTrue(pauses.getWaitTime(1).toMillis() <= 250); // lost another time
    }

    @Test
    void aKeyStoreThatCannotBeReadIsNamed() throws IOException {
        final Path missing = folder.resolve("missing.p12");
        final Path garbage = Files.writeString(folder.resolve("garbage.p12"), "no key store");
        assertNull(KeyStores.tlsOrNull(null, null, ""));
        for (Path file : List.of(missing, garbage)) {
            assertTrue(
                    refusal(() -> KeyStores.tlsOrNull(file, null, ""))
                            .startsWith("trust-store " + file + ": "));
            assertTrue(
                    refusal(() -> KeyStores.tlsOrNull(null, file, ""))
                            .startsWith("key-store " + file + ": "));
        }
    }

    @Test
    void aKeyStoreThatNeedsAPasswordIsNotTakenForAnEmptyOne() throws Exception {
        final TestKeys keys = TestKeys.make(folder, "one");
        final Path trust = keys.trustStore();
        final Path own = keys.keyStore();
        assertNotNull(KeyStores.tlsOrNull(trust, own, TestKeys.PASSWORD));
        for (String wrong : List.of("", "wrong")) {
            for (String refusal :
                    List.of(
                            refusal(() -> KeyStores.tlsOrNull(trust, null, wrong)),
                            refusal(() -> KeyStores.tlsOrNull(null, own, wrong)))) {
                assertTrue(refusal.contains("KVASIR_NATS_STORE_PASSWORD"), refusal);
                assertFalse(refusal.contains("Exception"), refusal);
            }
        }
        final String none = refusal(() -> KeyStores.tlsOrNull(null, trust, TestKeys.PASSWORD));
        assertTrue(none.contains("it has no key"), none);
    }
}
