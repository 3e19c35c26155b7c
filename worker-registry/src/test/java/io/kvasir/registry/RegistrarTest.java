package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.URI;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

class RegistrarTest {
    private static final InstanceId ID = new InstanceId("ns", "c", "e", "a");
    private static final Registration.Builder A =
            Registration.builder(ID, "m", URI.create("http://h:1"));

    private final MemoryStore store = new MemoryStore(Duration.ofSeconds(1));
    private final List<String> said = new CopyOnWriteArrayList<>();
    private final Registrar registrar =
            new Registrar(store, Clock.fixed(Instant.EPOCH, ZoneOffset.UTC), new Saying());

    /** A line for each thing that a registrar says. */
    private final class Saying implements Registrar.Listener {
        @Override
        public void notRenewed(RegistryException cause) {
            said.add(cause.getMessage());
        }

        @Override
        public void lapsed(Duration ttl) {
            said.add("lapsed after " + ttl);
        }

        @Override
        public void renewed(boolean lapsed) {
            said.add("renewed, lapsed=" + lapsed);
        }

        @Override
        public void notRemoved(InstanceId id, RegistryException cause) {
            said.add("not removed: " + id);
        }
    }

    @AfterEach
    void close() {
        store.away(false);
        registrar.close();
    }

    private Registration stored() {
        final Stored present = store.get(ID.key());
        return present == null ? null : Registration.decode(present.value());
    }

    @Test
    void aRunIsNewerThanAnyBeforeWhateverTheClockSays() {
        final long future = Long.MAX_VALUE - 1;
        final Registration left = A.build().withGeneration(future);
        store.force(ID.key(), left.encode());
        final ModelRegistration again = registrar.registerModel(A.build(), Duration.ZERO);
        assertEquals(future + 1, again.registration().generation());
        assertEquals(again.registration(), stored());
    }

    @Test
    void aGivenGenerationThatIsNotNewerIsRefused() {
        store.force(ID.key(), A.build().withGeneration(5).encode());
        final RegistryException stale =
                assertThrows(
                        RegistryException.class,
                        () -> registrar.registerModel(A.build().withGeneration(5), Duration.ZERO));
        assertEquals(Kind.STALE, stale.kind());
        assertTrue(stale.getMessage().contains("ns/c/e/a"), stale.getMessage());
        assertFalse(stale.kind().retryable());
    }

    @Test
    void aLateDrainOrCloseOfAnOlderRunChangesNothing() {
        final ModelRegistration older = registrar.registerModel(A.build(), Duration.ZERO);
        final Registration newer =
                older.registration().withGeneration(older.registration().generation() + 1);
        store.force(ID.key(), newer.encode());
        older.drain();
        assertEquals(newer, stored());
        older.close();
        assertEquals(newer, stored());
        assertTrue(older.superseded());
    }

    @Test
    void closingDrainsAndThenRemoves() throws InterruptedException {
        final ModelRegistration a = registrar.registerModel(A.build(), Duration.ofMinutes(10));
        final Thread closing = Thread.ofPlatform().start(a::close);
        Eventually.holds("drains", () -> stored().state() == InstanceState.DRAINING);
        closing.interrupt();
        closing.join();
        assertNull(stored());
        a.close();
        assertNull(stored());
    }

    @Test
    void whatWasLostIsPutAgainWhenTheStoreIsBack() throws InterruptedException {
        final ModelRegistration a = registrar.registerModel(A.build(), Duration.ZERO);
        store.away(true);
        Eventually.holds("counted", () -> registrar.unreachable() > 1);
        store.expire(ID.key());
        store.away(false);
        Eventually.holds("is back", () -> a.registration().equals(stored()));
    }

    @Test
    void anErrorOfARenewalIsSaidAndTheNextOneRenews() throws InterruptedException {
        final FaultyStore faulty = new FaultyStore(new MemoryStore(store.ttl()));
        final List<String> failures = new CopyOnWriteArrayList<>();
        final Registrar.Listener listening =
                new Registrar.Listener() {
                    @Override
                    public void notRenewed(RegistryException cause) {
                        failures.add(cause.getMessage());
                    }

                    @Override
                    public void renewed(boolean lapsed) {
                        failures.add("renewed");
                    }
                };
        try (Registrar other = new Registrar(faulty, listening)) {
            other.registerModel(A.build(), Duration.ZERO);
            faulty.broken(true);
            Eventually.holds("two tries", () -> other.unreachable() > 1);
            faulty.broken(false);
            Eventually.holds("renewed", () -> failures.contains("renewed"));
            assertEquals(List.of("the renewal failed: of the test", "renewed"), failures);
        }
    }

    @Test
    void anOutageItsLapseAndItsEndAreSaidOnceEach() throws InterruptedException {
        final ModelRegistration a = registrar.registerModel(A.build(), Duration.ZERO);
        for (int outage = 0; outage < 2; outage++) {
            said.clear();
            store.away(true);
            final long before = registrar.unreachable();
            Eventually.holds("the lapse", () -> said.size() == 2);
            Eventually.holds("further tries", () -> registrar.unreachable() > before + 3);
            store.away(false);
            Eventually.holds("the end", () -> said.size() > 2);
            assertEquals(List.of("away", "lapsed after PT1S", "renewed, lapsed=true"), said);
        }
        said.clear();
        store.away(true);
        a.close();
        Eventually.holds("the removal", () -> said.contains("not removed: " + ID));
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"78", "0000007b01", "0000fffe01"}) // the last begin as UTF-32 does
    void whatCannotBeReadIsWrittenOver(String hexOrNull) throws InterruptedException {
        final byte[] document = hexOrNull == null ? null : HexFormat.of().parseHex(hexOrNull);
        store.force(ID.key(), document);
        final ModelRegistration a = registrar.registerModel(A.build(), Duration.ZERO);
        assertEquals(a.registration(), stored());
        store.force(ID.key(), document);
        final byte[] own = a.registration().encode();
        Eventually.holds("is back", () -> Arrays.equals(own, store.get(ID.key()).value()));
    }

    @Test
    void aCloseWhileTheStoreIsAwayLeavesItToTheLease() {
        final ModelRegistration a = registrar.registerModel(A.build(), Duration.ZERO);
        store.away(true);
        a.close();
        assertTrue(registrar.unreachable() > 0);
        registrar.close();
        final RegistryException closed =
                assertThrows(
                        RegistryException.class,
                        () -> registrar.registerModel(A.build(), Duration.ZERO));
        assertEquals(Kind.UNAVAILABLE, closed.kind());
    }

    @Test
    void closingTheRegistrarLeavesWhatANewerRunHasTaken() {
        final MemoryStore quiet = new MemoryStore(Duration.ofHours(1)); // no renewal notices
        final Registration newer;
        try (Registrar older = new Registrar(quiet)) {
            final Registration own = older.registerModel(A.build(), Duration.ZERO).registration();
            newer = own.withGeneration(own.generation() + 1);
            quiet.force(ID.key(), newer.encode());
        }
        assertEquals(newer, Registration.decode(quiet.get(ID.key()).value()));
    }

    @Test
    void closingTheRegistrarRemovesWhatIsLeft() {
        registrar.registerModel(A.build(), Duration.ofMinutes(10));
        registrar.close();
        assertNull(stored());
    }
}
