package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Registrars of several processes that register a few names, drain and close them, over a store
 * that fails, loses answers, ends leases, and in which others write. Once it answers, what is
 * registered is there as it was described last, and what was closed is gone.
 */
class RegistrarModelTest {
    private static final int TRIALS = Trials.of(100, 2_000);
    private static final int STEPS = 40;
    private static final int PROCESSES = 3;
    private static final int NAMES = 2;

    @Tag("trials")
    @Test
    void whatIsRegisteredIsThereAsItWasDescribedLast() {
        final long seed = Seeds.next("RegistrarModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    private static String key(int name) {
        return id(name).key();
    }

    private static InstanceId id(int name) {
        return new InstanceId("ns", "c", "e", "w" + name);
    }

    private static final class Member {
        private final SharedLeases.Client store;
        private final Registrar registrar;
        private final List<ModelRegistration> open = new ArrayList<>();

        Member(SharedLeases.Client store, Clock clock) {
            this.store = store;
            registrar = new Registrar(store, clock, new Registrar.Listener() {});
        }

        void renew() {
            try {
                registrar.renew();
            } catch (RegistryException e) {
                assertEquals(RegistryException.Kind.UNAVAILABLE, e.kind());
            }
        }
    }

    /** One run, and its clock. */
    private static final class Model extends Clock {
        private final Random random;
        private final SharedLeases shared;
        private final List<Member> processes = new ArrayList<>();
        private final boolean areGiven; // generations, by the processes themselves
        private int ports;
        private long ms;

        Model(Random random) {
            this.random = random;
            shared = new SharedLeases(random.nextBoolean());
            areGiven = random.nextInt(3) == 0;
            for (int i = 0; i < PROCESSES; i++) {
                processes.add(new Member(shared.new Client(random), this));
            }
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                step(processes.get(random.nextInt(PROCESSES)));
            }
            processes.forEach(each -> each.store.faults(0));
            for (int i = 0; i < 2; i++) { // the first one may find that it is superseded
                processes.forEach(Member::renew);
            }
            check();
            processes.forEach(each -> each.registrar.close());
            for (int name = 0; name < NAMES; name++) {
                assertFalse(shared.isLeased(key(name)), "all have left");
            }
        }

        private void step(Member process) {
            switch (random.nextInt(10)) {
                case 0, 1 -> register(process);
                case 2 -> process.store.faults(random.nextInt(3) * 5);
                case 3 -> process.store.expire();
                case 4 -> shared.delete(key(random.nextInt(NAMES)));
                case 5 -> writeOver(random.nextInt(NAMES));
                case 6, 7 -> end(process);
                default -> process.renew();
            }
        }

        private void register(Member process) {
            final int name = random.nextInt(NAMES);
            final URI url = URI.create("http://h:" + ++ports); // each run is another one
            final Registration.Builder described = Registration.builder(id(name), "m", url);
            if (areGiven) {
                described.generation(2 + random.nextInt(3));
            }
            try {
                process.open.add(process.registrar.registerModel(described.build(), Duration.ZERO));
            } catch (RegistryException e) {
                assertTrue(areGiven || e.kind() == RegistryException.Kind.UNAVAILABLE, e::toString);
            }
        }

        /** By a program that knows no generations. */
        private void writeOver(int name) {
            final URI url = URI.create("http://other:1");
            shared.force(
                    key(name),
                    random.nextBoolean()
                            ? new byte[] {1}
                            : Registration.builder(id(name), "m", url)
                                    .generation(1)
                                    .build()
                                    .encode());
        }

        private void end(Member process) {
            if (process.open.isEmpty()) {
                return;
            }
            final int which = random.nextInt(process.open.size());
            if (random.nextBoolean()) {
                process.open.remove(which).close();
                return;
            }
            try {
                process.open.get(which).drain();
            } catch (RegistryException e) {
                assertEquals(RegistryException.Kind.UNAVAILABLE, e.kind());
            }
        }

        /** Goes on whenever it is looked at. */
        @Override
        public Instant instant() {
            return Instant.ofEpochMilli(++ms);
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }

        private void check() {
            for (Member process : processes) {
                for (ModelRegistration each : process.open) {
                    final Registration described = each.registration();
                    final Stored stored = shared.get(described.id().key());
                    if (!each.superseded()) {
                        assertNotNull(stored, described::toString);
                        assertEquals(described, Registration.decode(stored.value()));
                    }
                }
            }
        }
    }
}
