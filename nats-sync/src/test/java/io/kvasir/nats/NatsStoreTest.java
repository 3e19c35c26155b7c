package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.FaultyStore;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.LockingStoreContract;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.SeenKeys;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.ServerProcess;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.api.KeyValueConfiguration;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class NatsStoreTest extends LockingStoreContract {
    private static final AtomicInteger TESTS = new AtomicInteger();

    /** A slow machine must not look like a lost server. */
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final String bucket = "workers-" + TESTS.incrementAndGet();

    @Override
    protected LeasedStore open(Duration ttl) {
        return closing(new NatsStore(new NatsAccess(NATS.url(), null, null, TIMEOUT), bucket, ttl));
    }

    @Override
    protected ServerProcess server() {
        return NATS.server();
    }

    @Test
    void aBucketThatIsDeletedIsMadeAnewAndWatchedAnew() throws Exception {
        final Registrar registrar = closing(new Registrar(open()));
        final Registration a =
                registrar.registerModel(instance("a").build(), Duration.ZERO).registration();
        final Connection connection = Patient.connect(NATS.url());
        try {
            connection.keyValueManagement().delete(bucket);
        } finally {
            connection.close();
        }
        final LeasedStore other = open();
        Eventually.holds("is put again", () -> isStored(other, a));
    }

    private static Registration.Builder instance(String name) {
        return Registration.builder(
                new InstanceId("ns", "c", "e", name), "m", URI.create("http://h:1"));
    }

    private static boolean isStored(LeasedStore store, Registration registration) {
        try {
            return store.get(registration.id().key()) != null;
        } catch (RegistryException e) {
            return false; // at the moment between
        }
    }

    @Test
    void aKeyThatNoClientCanNameIsRefusedAndHoldsBackNoOther() throws Exception {
        final Registrar registrar = closing(new Registrar(open(SHORT_TTL)));
        registrar.registerModel(instance("renewed").build(), Duration.ZERO);
        final Seen seen = watched(open(SHORT_TTL));
        final Connection raw = closing(Patient.connect(NATS.url()));
        final String odd = "$KV." + bucket + ".ns.c.e.x@y";
        raw.publish(odd, "{}".getBytes(StandardCharsets.UTF_8));
        Eventually.holds("refused", () -> !seen.refusals.isEmpty());
        Eventually.holds("NATS has dropped it", () -> isDropped(raw, odd));
        final Registration left = instance("silent").generation(1).build();
        open(SHORT_TTL).put(left.id().key(), left.encode(), LeasedStore.ABSENT);
        Eventually.holds("was seen", () -> seen.everSeen.contains("silent"));
        Eventually.holds("one is left", () -> seen.names().equals(Set.of("renewed")));
        assertEquals(1, Set.copyOf(seen.refusals).size(), seen.refusals::toString);
        assertTrue(seen.refusals.getFirst().contains("ns/c/e/x@y"), seen.refusals::toString);
        stopServer();
        startServer();
        registrar.registerModel(instance("later").build(), Duration.ZERO);
        Eventually.holds("is seen", () -> seen.names().equals(Set.of("renewed", "later")));
    }

    @Test
    void whatAWatcherFailsToTakeIsReadAnew() throws Exception {
        final LeasedStore writing = open();
        writing.put("ns/a", new byte[] {1}, LeasedStore.ABSENT);
        final FailingOnce seen = new FailingOnce();
        open().watch("ns/", seen);
        Eventually.holds("a view after one that failed", () -> seen.keys.equals(Set.of("ns/a")));
        writing.put("ns/b", new byte[] {1}, LeasedStore.ABSENT);
        Eventually.holds("all again", () -> seen.keys.equals(Set.of("ns/a", "ns/b")));
        assertEquals(2, seen.losses.size(), seen.losses::toString);
        assertTrue(seen.losses.getFirst().contains("of the test"), seen.losses::toString);
    }

    /** Fails with the first view, and with the first change. */
    private static final class FailingOnce extends SeenKeys {
        private boolean hasFailed;

        @Override
        public void view(List<Stored> all) {
            if (losses.isEmpty()) {
                throw new IllegalStateException("of the test");
            }
            super.view(all);
        }

        @Override
        public void put(Stored stored) {
            if (!hasFailed) {
                hasFailed = true;
                throw new OutOfMemoryError("of the test");
            }
            super.put(stored);
        }
    }

    private boolean isDropped(Connection raw, String subject) {
        try {
            raw.jetStreamManagement().getLastMessage("KV_" + bucket, subject);
            return false;
        } catch (JetStreamApiException e) {
            return true; // no message found
        } catch (IOException e) {
            return false; // asked again
        }
    }

    @Test
    void aBucketKeepsTheTtlThatItWasMadeWith() {
        open(Duration.ofSeconds(7)).get("ns/a");
        final LeasedStore other = open(Duration.ofSeconds(70));
        other.get("ns/a");
        assertEquals(Duration.ofSeconds(7), other.ttl());
    }

    @Test
    void aLockOfAKilledHolderEndsAlsoInABucketWithoutATtl() throws Exception {
        final Connection raw = closing(Patient.connect(NATS.url()));
        raw.keyValueManagement().create(KeyValueConfiguration.builder().name(bucket).build());
        raw.keyValue(bucket).put("locks.b", "no holder's");
        final Duration ttl = Duration.ofSeconds(1);
        final FaultyStore killedStore = new FaultyStore(open(ttl));
        final LeaseLock killed = closing(new LeaseLock(killedStore, "locks/a"));
        assertTrue(killed.take());
        killedStore.cutOff(true);
        final LeaseLock next = closing(new LeaseLock(open(ttl), "locks/a"));
        Eventually.holds("it is taken over", next::take);
        killedStore.cutOff(false);
        assertThrows(IllegalStateException.class, killed::check);
        next.check();
        final LeaseLock other = closing(new LeaseLock(open(ttl), "locks/b"));
        Eventually.holds("a value of others is taken over", other::take);
    }

    @Test
    void aBucketWithoutATtlIsSaidOnceAndOneWithATtlIsNot() throws Exception {
        final List<String> warnings = new CopyOnWriteArrayList<>();
        warned(warnings).get("ns/a");
        assertEquals(List.of(), warnings);
        final Connection raw = closing(Patient.connect(NATS.url()));
        raw.keyValueManagement().delete(bucket);
        raw.keyValueManagement().create(KeyValueConfiguration.builder().name(bucket).build());
        final LeasedStore store = warned(warnings);
        store.get("ns/a");
        raw.keyValueManagement().delete(bucket);
        raw.keyValueManagement().create(KeyValueConfiguration.builder().name(bucket).build());
        store.keepAlive(); // opens the other one
        store.get("ns/a");
        assertEquals(1, warnings.size(), warnings::toString);
        assertTrue(warnings.getFirst().contains("KV_" + bucket + " --max-age 30s"));
    }

    private LeasedStore warned(List<String> warnings) {
        return closing(
                new NatsStore(
                        new NatsAccess(NATS.url(), null, null, TIMEOUT),
                        bucket,
                        Duration.ofSeconds(30),
                        new ConnectPause(),
                        warnings::add));
    }

    @Test
    void aNatsThatIsNotThereIsNamed() {
        final LeasedStore lost =
                closing(new NatsStore(NatsAccess.of("nats://127.0.0.1:1"), bucket, TTL));
        final RegistryException refusal =
                assertThrows(RegistryException.class, () -> lost.get("ns/a"));
        assertEquals(Kind.UNAVAILABLE, refusal.kind());
        assertTrue(refusal.getMessage().contains("127.0.0.1:1"), refusal.getMessage());
    }

    @Test
    void limitsAreChecked() {
        final NatsAccess access = NatsAccess.of("nats://x");
        assertThrows(IllegalArgumentException.class, () -> new NatsStore(access, "no bucket", TTL));
        assertThrows(
                IllegalArgumentException.class, () -> new NatsStore(access, "b", Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> NatsAccess.of(" "));
    }
}
