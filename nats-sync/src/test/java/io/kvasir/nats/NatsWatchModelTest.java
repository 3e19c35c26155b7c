package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.Seeds;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.KeyValue;
import io.nats.client.api.KeyValueConfiguration;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * A watch of a bucket that others write to, purge, delete, make anew with any history, and whose
 * consumers and server they end. Whenever they are quiet it comes to show what is there.
 */
@Tag("integration") // starts a server
class NatsWatchModelTest {
    private static final String BUCKET = "watched";
    private static final String STREAM = "KV_" + BUCKET;
    private static final String PREFIX = "ns.";
    private static final int ROUNDS = 4;

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final List<String> done = new ArrayList<>();
    private Random random;
    private Connection raw;
    private KeyValue keys;

    @Test
    void showsWhatIsThereOnceAllIsQuiet() throws Exception {
        final long seed = Seeds.next("NatsWatchModelTest");
        random = new Random(seed);
        final Seen seen = new Seen();
        raw = Patient.connect(NATS.url());
        try (NatsStore store =
                new NatsStore(Patient.access(NATS.url()), BUCKET, Duration.ofSeconds(3))) {
            makeBucket();
            store.watch("ns/", seen);
            for (int round = 0; round < ROUNDS; round++) {
                for (int step = 1 + random.nextInt(4); step > 0; step--) {
                    step();
                }
                agree(seen, seed);
                done.clear();
            }
        } finally {
            raw.close();
        }
    }

    private void agree(Seen seen, long seed) throws Exception {
        Eventually.until(
                () -> "-Dseed=" + seed + " " + done + ": seen are " + seen,
                () -> seen.shows(there()));
    }

    /** Nothing where the bucket is not there at the moment. */
    private Map<String, String> there() throws IOException, InterruptedException {
        final Map<String, String> there = new TreeMap<>();
        try {
            for (String key : keys.keys()) {
                if (key.startsWith(PREFIX) && key.indexOf('@') < 0) {
                    final var entry = keys.get(key);
                    if (entry != null) {
                        there.put(
                                key.replace('.', '/'),
                                new String(entry.getValue(), StandardCharsets.UTF_8));
                    }
                }
            }
        } catch (JetStreamApiException | IllegalStateException e) {
            there.put("it cannot be read", e.getMessage());
        }
        return there;
    }

    private void makeBucket() throws IOException {
        try {
            raw.keyValueManagement()
                    .create(
                            KeyValueConfiguration.builder()
                                    .name(BUCKET)
                                    .maxHistoryPerKey(1 + random.nextInt(5))
                                    .build());
        } catch (JetStreamApiException e) {
            done.add("it was made by the store");
        }
        keys = raw.keyValue(BUCKET);
    }

    private void step() throws Exception {
        final String key = PREFIX + (char) ('a' + random.nextInt(5));
        final int what = random.nextInt(16);
        final JetStreamManagement management = raw.jetStreamManagement();
        try {
            switch (what) {
                case 0 -> keys.delete(key);
                case 1 -> keys.purge(key);
                case 2 -> management.purgeStream(STREAM);
                case 3 -> {
                    raw.keyValueManagement().delete(BUCKET);
                    makeBucket();
                }
                case 4 -> {
                    for (String consumer : management.getConsumerNames(STREAM)) {
                        management.deleteConsumer(STREAM, consumer);
                    }
                }
                case 5 -> raw.publish("$KV." + BUCKET + ".ns.x@y", new byte[] {1});
                case 6 -> {
                    NATS.server().stop();
                    NATS.server().start();
                    Eventually.holds(() -> raw.getStatus() == Connection.Status.CONNECTED);
                }
                default -> keys.put(key, "v" + random.nextInt(1000));
            }
            done.add(what + " " + key);
        } catch (JetStreamApiException | IOException e) {
            done.add(what + " " + key + " fails: " + e.getMessage());
        }
    }

    /** What was reported. */
    private static final class Seen implements LeasedStore.Watcher {
        private final Map<String, String> keys = new TreeMap<>();
        private boolean isLost = true;
        private String broken = "";
        private int losses;

        synchronized boolean shows(Map<String, String> there) {
            assertFalse(!broken.isEmpty(), broken);
            return !isLost && keys.equals(there);
        }

        @Override
        public synchronized void view(List<Stored> all) {
            isLost = false;
            keys.clear();
            all.forEach(this::put);
        }

        @Override
        public synchronized void put(Stored stored) {
            broken = isLost ? "a change before a view" : broken;
            if (stored.key().indexOf('@') < 0) {
                keys.put(stored.key(), new String(stored.value(), StandardCharsets.UTF_8));
            }
        }

        @Override
        public synchronized void deleted(String key) {
            broken = isLost ? "a change before a view" : broken;
            keys.remove(key);
        }

        @Override
        public synchronized void lost(String cause) {
            losses++;
            isLost = true;
        }

        @Override
        public synchronized String toString() {
            return keys + (isLost ? " (lost)" : "") + ", losses " + losses;
        }
    }
}
