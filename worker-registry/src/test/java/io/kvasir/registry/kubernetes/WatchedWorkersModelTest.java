package io.kvasir.registry.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceView;
import io.kvasir.registry.Registration;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.net.URI;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * Objects that are made, edited, renewed, deleted and made anew, in two namespaces, with leases and
 * without, under any names; the watch lags, breaks and lists anew, and the API server is away. When
 * all is quiet, what is known is what is there.
 */
class WatchedWorkersModelTest {
    private static final int TRIALS = Trials.of(80, 1_500);
    private static final int STEPS = 60;
    private static final Duration LEASE = Duration.ofSeconds(10);

    @Tag("trials")
    @Test
    void whatIsKnownIsWhatIsThere() {
        final long seed = Seeds.next("WatchedWorkersModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    /** One run. */
    private static final class Model extends Clock {
        private static final List<String> NAMES = List.of("ns.c.e.a", "ns.c.e.b", "by-hand");
        private static final List<InstanceId> IDS =
                List.of(
                        new InstanceId("ns", "c", "e", "a"),
                        new InstanceId("ns", "c", "e", "b"),
                        new InstanceId("other", "c", "e", "a"));

        private final Random random;
        private final Map<String, ObjectNode> objects = new TreeMap<>(); // by name
        private final Deque<Runnable> coming = new ArrayDeque<>(); // what the watch will say
        private final InstanceView view = new InstanceView(new Quiet());
        private final WatchedWorkers workers =
                new WatchedWorkers("ns/", view, this, this::nowNs, () -> {});
        private long ns;
        private long version;

        Model(Random random) {
            this.random = random;
        }

        void run() {
            workers.view(List.of());
            for (int step = 0; step < STEPS; step++) {
                step(NAMES.get(random.nextInt(NAMES.size())));
            }
            NAMES.forEach(this::renew);
            hearAll();
            assertKnown(NAMES);
            list();
            assertKnown(NAMES);
            ns += LEASE.toNanos() + 1;
            final List<String> alive =
                    NAMES.stream()
                            .filter(name -> isUnleased(name) || random.nextBoolean())
                            .toList();
            alive.forEach(this::renew);
            hearAll();
            list(); // as one is due, if one is
            assertKnown(alive);
        }

        private boolean isUnleased(String name) {
            return objects.containsKey(name) && !objects.get(name).has("lease");
        }

        private void hearAll() {
            while (!coming.isEmpty()) {
                coming.remove().run();
            }
        }

        private void assertKnown(List<String> names) {
            final Map<String, Registration> there = new TreeMap<>();
            for (String name : names) {
                if (objects.containsKey(name)) {
                    final WorkerResource object = new WorkerResource(objects.get(name));
                    final Registration is = Registration.decode(object.stored().value());
                    if (is.id().namespace().equals("ns")
                            && WorkerResource.name(is.id().key()).equals(name)) {
                        there.put(is.id().key(), is);
                    }
                }
            }
            assertEquals(List.copyOf(there.values()), view.instances());
        }

        private void step(String name) {
            switch (random.nextInt(9)) {
                case 0, 1 -> write(name);
                case 2 -> delete(name);
                case 3, 4 -> renew(name);
                case 5 -> ns += random.nextLong(LEASE.toNanos());
                case 6 -> {
                    workers.lost("away");
                    workers.unlisted();
                    if (random.nextBoolean()) {
                        list();
                    }
                }
                case 7 -> list();
                default -> {
                    if (!coming.isEmpty()) {
                        coming.remove().run();
                    }
                }
            }
        }

        /** All that is there, after which the watch says only what is later. */
        private void list() {
            coming.clear();
            final List<JsonNode> all = new ArrayList<>();
            objects.values().forEach(object -> all.add(object.deepCopy()));
            workers.view(all);
        }

        private void write(String name) {
            final ObjectNode before = objects.get(name);
            final Registration registration =
                    Registration.builder(
                                    IDS.get(random.nextInt(IDS.size())),
                                    "m",
                                    URI.create("http://h:" + (1 + random.nextInt(9))))
                            .generation(before == null ? 1 + random.nextInt(9) : ++version)
                            .build();
            final ObjectNode object =
                    WorkerResource.of(
                            registration.id().key(),
                            registration.encode(),
                            null,
                            instant(),
                            LEASE,
                            null);
            if (random.nextInt(3) == 0) {
                object.remove("lease");
            }
            final ObjectNode metadata = (ObjectNode) object.path("metadata");
            metadata.put("name", name);
            metadata.put(
                    "uid",
                    before == null
                            ? "uid-" + ++version
                            : before.path("metadata").path("uid").asText());
            objects.put(name, object);
            changed(object);
        }

        private void renew(String name) {
            final ObjectNode object = objects.get(name);
            if (object == null) {
                return;
            }
            if (object.has("lease")) {
                ((ObjectNode) object.path("lease"))
                        .put("renewTime", instant().plusNanos(1_000 * ++version).toString());
            }
            changed(object);
        }

        private void changed(ObjectNode object) {
            ((ObjectNode) object.path("metadata"))
                    .put("resourceVersion", Long.toString(++version + 100));
            final JsonNode now = object.deepCopy();
            coming.add(() -> workers.changed(now));
        }

        private void delete(String name) {
            final ObjectNode object = objects.remove(name);
            if (object != null) {
                coming.add(() -> workers.deleted(object));
            }
        }

        private long nowNs() {
            return ns;
        }

        @Override
        public Instant instant() {
            return Instant.EPOCH.plusNanos(ns);
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }
    }

    /** Hears nothing. */
    private static final class Quiet implements InstanceView.Listener {
        @Override
        public void changed() {
            // the view is looked at
        }

        @Override
        public void refused(String cause) {
            // of objects that name another instance than their name says
        }

        @Override
        public void lost(String cause) {
            // what was seen holds
        }

        @Override
        public void found(Duration away) {
            // likewise
        }
    }
}
