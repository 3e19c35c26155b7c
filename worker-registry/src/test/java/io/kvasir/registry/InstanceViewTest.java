package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullAndEmptySource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

class InstanceViewTest {
    private long nowNs;
    private final List<String> received = new ArrayList<>();
    private final MemoryStore store = new MemoryStore(Duration.ofMinutes(1));
    private final InstanceView view =
            new InstanceView(
                    new InstanceView.Listener() {
                        @Override
                        public void changed() {
                            received.add("changed");
                        }

                        @Override
                        public void refused(String cause) {
                            received.add("refused " + cause);
                        }

                        @Override
                        public void lost(String cause) {
                            received.add("lost " + cause);
                        }

                        @Override
                        public void found(Duration away) {
                            received.add(
                                    away.isZero() ? "found" : "found after " + away.toSeconds());
                        }
                    },
                    () -> nowNs);

    private static Registration instance(String name, long generation) {
        return Registration.builder(
                        new InstanceId("ns", "c", "e", name), "m", URI.create("http://h:1"))
                .generation(generation)
                .build();
    }

    private void force(Registration registration) {
        store.force(registration.id().key(), registration.encode());
    }

    private void watch() {
        store.watch(InstanceId.prefix("ns"), view);
        received.clear();
    }

    @Test
    void anOlderGenerationThatArrivesLateChangesNothing() {
        watch();
        force(instance("a", 7));
        force(instance("a", 6));
        force(instance("a", 6).withState(InstanceState.DRAINING));
        assertEquals(List.of(instance("a", 7)), view.instances());
        assertEquals(List.of("changed"), received);
        force(instance("a", 7).withState(InstanceState.DRAINING));
        assertEquals(List.of(instance("a", 7).withState(InstanceState.DRAINING)), view.instances());
    }

    @Test
    void anOlderOneIsBelievedOnceTheStoreHoldsNothingElse() {
        watch();
        force(instance("a", 7));
        force(instance("a", 6));
        store.away(true);
        store.away(false);
        assertEquals(List.of(instance("a", 6)), view.instances());
    }

    @Test
    void aRenewalIsNoChange() {
        watch();
        force(instance("a", 7));
        force(instance("a", 7));
        assertEquals(List.of("changed"), received);
    }

    @ParameterizedTest
    @NullAndEmptySource
    @ValueSource(strings = {"78", "0000007b01", "0000fffe01"}) // the last begin as UTF-32 does
    void whatCannotBeReadIsToldOnceAndChangesNothing(String hexOrNull) {
        watch();
        force(instance("a", 7));
        final String key = instance("a", 7).id().key();
        final byte[] document = hexOrNull == null ? null : HexFormat.of().parseHex(hexOrNull);
        store.force(key, document);
        store.force(key, document);
        assertEquals(List.of(instance("a", 7)), view.instances());
        assertEquals(2, received.size(), received::toString);
        assertTrue(received.getLast().startsWith("refused key ns/c/e/a: "), received::toString);
        store.expire(key);
        assertEquals(List.of(), view.instances());
    }

    @Test
    void aKeyThatCannotBeUsedIsSaidOnceUntilItCan() {
        watch();
        final String key = instance("a", 7).id().key();
        for (byte value = 1; value < 9; value++) {
            store.force(key, new byte[] {value});
        }
        store.away(true);
        store.force(key, new byte[] {0});
        store.away(false);
        assertEquals(3, received.size(), received::toString); // with the outage and its end
        force(instance("a", 7));
        store.force(key, new byte[] {1});
        assertEquals(5, received.size(), received::toString);
        assertTrue(received.getLast().startsWith("refused key ns/c/e/a: "), received::toString);
        store.expire(key);
        store.force(key, new byte[] {1});
        assertEquals(7, received.size(), received::toString);
    }

    @Test
    void whatCannotBeReadIsNoLossOfTheOthers() {
        force(instance("a", 7));
        store.force(instance("b", 1).id().key(), new byte[] {0, 0, 0, '{', 1});
        store.force(instance("c", 1).id().key(), null);
        store.watch(InstanceId.prefix("ns"), view);
        assertEquals(List.of(instance("a", 7)), view.instances());
        assertEquals(4, received.size(), received::toString);
        assertTrue(received.get(0).startsWith("refused key ns/c/e/b: "), received::toString);
        assertTrue(received.get(1).startsWith("refused key ns/c/e/c: "), received::toString);
        assertEquals(List.of("found", "changed"), received.subList(2, 4));
    }

    @Test
    void ofManyThatCannotBeReadInOneViewTheFirstAreNamedAndAllAreCounted() {
        for (int i = 1000; i < 2000; i++) {
            store.force(instance("w" + i, 1).id().key(), new byte[] {1});
        }
        force(instance("a", 7));
        store.watch(InstanceId.prefix("ns"), view);
        assertEquals(3, received.size(), received::toString); // with "found" and "changed"
        final String refused = received.getFirst();
        assertTrue(refused.startsWith("refused 1000 keys cannot be used, the first of"), refused);
        assertEquals(4, refused.split("key ns/c/e/w", -1).length, refused);
        store.away(true);
        store.away(false);
        assertEquals(5, received.size(), received::toString); // none of them again
        store.force(instance("late", 1).id().key(), new byte[] {1});
        assertTrue(received.getLast().startsWith("refused key ns/c/e/late: "), received::toString);
    }

    @Test
    void aDocumentUnderTheKeyOfAnotherIsRefused() {
        watch();
        store.force(instance("b", 1).id().key(), instance("a", 7).encode());
        assertEquals(List.of(), view.instances());
        assertTrue(received.getLast().contains("ns/c/e/a"), received::toString);
    }

    @Test
    void aLossIsToldOnceAndTheLastViewHolds() {
        watch();
        force(instance("a", 7));
        received.clear();
        store.away(true);
        view.lost("away");
        assertEquals(List.of("lost away"), received);
        assertEquals(List.of(instance("a", 7)), view.instances());
        received.clear();
        store.expire(instance("a", 7).id().key()); // unseen
        force(instance("b", 8));
        store.away(false);
        assertEquals(List.of("found", "changed"), received);
        assertEquals(List.of(instance("b", 8)), view.instances());
        store.away(true);
        assertEquals("lost away", received.getLast());
    }

    @Test
    void otherNamespacesAreNotSeen() {
        watch();
        store.force("ns2/c/e/a", instance("a", 7).encode());
        assertEquals(List.of(), view.instances());
        assertEquals(List.of(), received);
    }

    @Test
    void aKeyWhoseValueWasNotReadIsSaidOnceAndStaysAsItWas() {
        watch();
        force(instance("a", 7));
        final Stored large =
                store.get(instance("a", 7).id().key())
                        .unread("70000 bytes, at most 65536 are read");
        received.clear();
        view.put(large);
        view.put(large);
        view.view(List.of(large));
        assertEquals(
                List.of("refused key ns/c/e/a: 70000 bytes, at most 65536 are read", "found"),
                received);
        assertEquals(List.of(instance("a", 7)), view.instances());
        force(instance("a", 8));
        assertEquals(List.of(instance("a", 8)), view.instances());
    }

    @Test
    void eachReasonOfAnOutageIsSaidOnceAndItsEndWithHowLongItWas() {
        watch();
        nowNs = 5_000_000_000L;
        for (int i = 0; i < 3; i++) {
            view.lost("etcd at [http://a:1, http://b:1] fails at http://a:1/v3/watch: refused");
            view.lost("etcd at [http://a:1, http://b:1] fails at http://b:1/v3/kv/range: refused");
            view.lost("denied");
            nowNs += 4_000_000_000L;
        }
        view.view(List.of());
        view.view(List.of());
        view.lost("denied");
        assertEquals(
                List.of(
                        "lost etcd at [http://a:1, http://b:1] fails at http://a:1/v3/watch:"
                                + " refused",
                        "lost denied",
                        "found after 12",
                        "found",
                        "lost denied"),
                received);
    }

    @Test
    void anOutageOfManyReasonsSaysAFew() {
        watch();
        for (int i = 0; i < 100; i++) {
            view.lost("reason " + i);
        }
        assertEquals(Outage.MOST_REASONS, received.size());
    }
}
