package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.ObjIntConsumer;

/** What every {@link LeasedStore} and its users keep to, against its real server. */
public abstract class LeasedStoreContract {
    /** Of keys that do not end by themselves in a test, however slow the machine is. */
    protected static final Duration TTL = Duration.ofSeconds(15);

    /** Short, for tests that wait for it. */
    protected static final Duration SHORT_TTL = Duration.ofSeconds(4);

    private static final String NAMESPACE = "ns";
    private static final int AT_ONCE = 8;

    private final List<AutoCloseable> opened = new ArrayList<>();
    private boolean stopped;

    /** A store of a fresh set of keys, which all stores of one test share. */
    protected LeasedStore open() {
        return open(TTL);
    }

    /** The same, where the set of keys is made now with another TTL. */
    protected abstract LeasedStore open(Duration ttl);

    protected abstract ServerProcess server();

    protected <T extends AutoCloseable> T closing(T resource) {
        opened.add(resource);
        return resource;
    }

    @AfterEach
    void closeAll() throws Exception {
        startServer(); // if a test has stopped it
        for (AutoCloseable each : opened.reversed()) {
            each.close();
        }
    }

    protected final void stopServer() throws InterruptedException {
        server().stop();
        stopped = true;
    }

    protected final void startServer() throws IOException, InterruptedException {
        if (stopped) {
            server().start();
            stopped = false;
        }
    }

    /** How many instances a test of many has. */
    protected int many() {
        return 10_000;
    }

    /** Whether the store itself keeps an older generation from replacing a newer one. */
    protected boolean fencesGenerations() {
        return false;
    }

    private static Registration.Builder instance(String name) {
        return Registration.builder(
                new InstanceId(NAMESPACE, "c", "e", name), "m", URI.create("http://h:1"));
    }

    /** A view of what a store of its own tells. */
    protected static final class Seen implements InstanceView.Listener {
        private static final int FEW = 100;

        public final InstanceView view = new InstanceView(this);

        /** Names of all that were seen; not while there are many. */
        public final Set<String> everSeen = ConcurrentHashMap.newKeySet();

        public final List<String> losses = new CopyOnWriteArrayList<>();
        public final List<String> refusals = new CopyOnWriteArrayList<>();
        public volatile int found;

        /** Was called with nothing. */
        public Seen() {}

        public Set<String> names() {
            final Set<String> names = new HashSet<>();
            view.instances().forEach(i -> names.add(i.id().instance()));
            return names;
        }

        @Override
        public void changed() {
            if (view.instances().size() <= FEW) { // else each of many changes costs as many names
                everSeen.addAll(names());
            }
        }

        @Override
        public void refused(String cause) {
            refusals.add(cause);
        }

        @Override
        public void lost(String cause) {
            losses.add(cause);
        }

        @Override
        @SuppressWarnings("NonAtomicVolatileUpdate") // one thread tells
        public void found(Duration away) {
            found++;
        }
    }

    protected static Seen watched(LeasedStore store) {
        final Seen seen = new Seen();
        store.watch(InstanceId.prefix(NAMESPACE), seen.view);
        return seen;
    }

    @Test
    void aWriteIsRefusedWhereTheKeyIsAtAnotherRevision() {
        final LeasedStore store = open();
        final Registration one = instance("a").generation(1).build();
        final Registration two = one.withGeneration(2);
        final String key = one.id().key();
        assertNull(store.get(key));
        final long first = store.put(key, one.encode(), LeasedStore.ABSENT);
        assertTrue(first > 0);
        assertEquals(LeasedStore.CONFLICT, store.put(key, two.encode(), LeasedStore.ABSENT));
        assertEquals(LeasedStore.CONFLICT, open().put(key, two.encode(), first + 1));
        final long second = open().put(key, two.encode(), first);
        assertNotEquals(first, second);
        assertEquals(second, store.get(key).revision());
        assertEquals(two, Registration.decode(store.get(key).value()));
        assertTrue(!store.delete(key, first));
        assertTrue(store.delete(key, second));
        assertNull(store.get(key));
        assertTrue(store.put(key, one.encode(), LeasedStore.ABSENT) > second);
    }

    @Test
    void whatIsThereComesFirstAndChangesFollow() throws Exception {
        final Registrar registrar = closing(new Registrar(open()));
        final ModelRegistration a = registrar.registerModel(instance("a").build(), Duration.ZERO);
        final Seen seen = watched(open());
        Eventually.holds("the first", () -> seen.names().equals(Set.of("a")));
        registrar.registerModel(instance("b").build(), Duration.ZERO);
        Eventually.holds("the second", () -> seen.names().equals(Set.of("a", "b")));
        a.drain();
        Eventually.holds(
                "drains", () -> seen.view.instances().getFirst().state() == InstanceState.DRAINING);
        a.close();
        Eventually.holds("is gone", () -> seen.names().equals(Set.of("b")));
        assertEquals(List.of(), seen.losses);
        assertEquals(List.of(), seen.refusals);
    }

    @Test
    void aSilentInstanceExpiresAndARenewedOneStays() throws Exception {
        final Registrar registrar = closing(new Registrar(open(SHORT_TTL)));
        registrar.registerModel(instance("renewed").build(), Duration.ZERO);
        final Seen seen = watched(open(SHORT_TTL));
        Eventually.holds("one", () -> seen.names().equals(Set.of("renewed")));
        final LeasedStore silent = open(SHORT_TTL);
        final Registration left = instance("silent").generation(1).build();
        silent.put(left.id().key(), left.encode(), LeasedStore.ABSENT); // never renewed
        Eventually.holds("was seen", () -> seen.everSeen.contains("silent"));
        Eventually.holds("one is left", () -> seen.names().equals(Set.of("renewed")));
        assertNull(silent.get(left.id().key()));
    }

    @Test
    void aNewerGenerationTakesTheKeyAndTheOlderOneCannotTouchItAnyMore() throws Exception {
        final Registrar first = closing(new Registrar(open()));
        final ModelRegistration older = first.registerModel(instance("a").build(), Duration.ZERO);
        final Registrar second = closing(new Registrar(open()));
        final ModelRegistration newer = second.registerModel(instance("a").build(), Duration.ZERO);
        assertTrue(newer.registration().generation() > older.registration().generation());
        older.drain(); // late
        older.close(); // late
        final Seen seen = watched(open());
        Eventually.holds(
                "the newer one", () -> seen.view.instances().equals(List.of(newer.registration())));
        Eventually.holds("noticed", older::superseded);
        assertTrue(!newer.superseded());
        final RegistryException stale =
                assertThrows(
                        RegistryException.class,
                        () ->
                                first.registerModel(
                                        instance("a").generation(1).build(), Duration.ZERO));
        assertEquals(Kind.STALE, stale.kind());
    }

    @Test
    void whatOthersDeleteOrOverwriteIsPutAgain() throws Exception {
        final Registrar registrar = closing(new Registrar(open()));
        final Registration a =
                registrar.registerModel(instance("a").build(), Duration.ZERO).registration();
        final LeasedStore other = open();
        Eventually.holds( // a renewal in between makes it another revision
                "deleted", () -> other.delete(a.id().key(), other.get(a.id().key()).revision()));
        Eventually.holds("is back", () -> other.get(a.id().key()) != null);
        if (fencesGenerations()) {
            Eventually.holds("refused", () -> isRefused(other, a.withGeneration(1)));
            return;
        }
        Eventually.holds(
                "overwritten",
                () ->
                        other.put(
                                        a.id().key(),
                                        a.withGeneration(1).encode(),
                                        other.get(a.id().key()).revision())
                                > 0);
        Eventually.holds(
                "is back", () -> Registration.decode(other.get(a.id().key()).value()).equals(a));
    }

    /** Whether the store refuses it; not where a renewal in between makes another revision. */
    private static boolean isRefused(LeasedStore store, Registration older) {
        final String key = older.id().key();
        try {
            assertEquals(
                    LeasedStore.CONFLICT,
                    store.put(key, older.encode(), store.get(key).revision()));
            return false;
        } catch (RegistryException e) {
            assertEquals(Kind.MALFORMED, e.kind(), e.getMessage());
            return true;
        }
    }

    @Test
    void aLostServerIsToldOnceAndItsReturnReadsAllAnew() throws Exception {
        final Registrar registrar = closing(new Registrar(open()));
        registrar.registerModel(instance("a").build(), Duration.ZERO);
        final Seen seen = watched(open());
        Eventually.holds("the first", () -> seen.names().equals(Set.of("a")));
        stopServer();
        Eventually.holds("told", () -> !seen.losses.isEmpty());
        assertEquals(Set.of("a"), seen.names());
        assertThrows(
                RegistryException.class,
                () -> registrar.registerModel(instance("b").build(), Duration.ZERO));
        assertNoneIsRepeated(seen.losses);
        final int before = seen.found;
        startServer();
        Eventually.holds("found", () -> seen.found > before);
        registrar.registerModel(instance("c").build(), Duration.ZERO);
        Eventually.holds("all are there", () -> seen.names().equals(Set.of("a", "c")));
        assertNoneIsRepeated(seen.losses);
    }

    private static void assertNoneIsRepeated(List<String> reasons) {
        assertEquals(reasons.size(), Set.copyOf(reasons).size(), reasons::toString);
        assertTrue(reasons.size() <= Outage.MOST_REASONS, reasons::toString);
    }

    @Test
    void aWatchBeginsBeforeItsServer() throws Exception {
        final Registration made = instance("x").generation(1).build();
        open().put(made.id().key(), made.encode(), LeasedStore.ABSENT); // the keys are made
        stopServer();
        final Seen seen = watched(open());
        Eventually.holds("told", () -> !seen.losses.isEmpty());
        startServer();
        Eventually.holds("found", () -> seen.found > 0);
        final Registrar registrar = closing(new Registrar(open()));
        registrar.registerModel(instance("a").build(), Duration.ZERO);
        Eventually.holds("the first", () -> seen.names().contains("a"));
    }

    @Test
    void manyInstancesAreSeenAndGoAway() throws Exception {
        final List<Registrar> registrars = new ArrayList<>();
        for (int i = 0; i < AT_ONCE; i++) {
            registrars.add(closing(new Registrar(open(Duration.ofMinutes(10)))));
        }
        registerAll(registrars, 0, many() / 2);
        final Seen seen = watched(open(Duration.ofMinutes(10)));
        Eventually.holds("those before", () -> seen.names().size() == many() / 2);
        registerAll(registrars, many() / 2, many());
        Eventually.holds("those after", () -> seen.names().size() == many());
        atOnce(registrars, (registrar, _) -> registrar.close());
        Eventually.holds("none", () -> seen.names().isEmpty());
        assertEquals(List.of(), seen.losses);
        assertEquals(List.of(), seen.refusals);
    }

    /** Each of some registers its share: a store takes one call of each at a time. */
    private static void registerAll(List<Registrar> registrars, int from, int to) throws Exception {
        atOnce(
                registrars,
                (registrar, number) -> {
                    for (int i = from + number; i < to; i += registrars.size()) {
                        registrar.registerModel(instance("w" + i).build(), Duration.ZERO);
                    }
                });
    }

    private static void atOnce(List<Registrar> registrars, ObjIntConsumer<Registrar> call)
            throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<Future<?>> calls = new ArrayList<>();
            for (int i = 0; i < registrars.size(); i++) {
                final int number = i;
                calls.add(threads.submit(() -> call.accept(registrars.get(number), number)));
            }
            for (Future<?> each : calls) {
                each.get();
            }
        }
    }
}
