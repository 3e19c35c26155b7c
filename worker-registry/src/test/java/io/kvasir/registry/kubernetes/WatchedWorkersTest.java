package io.kvasir.registry.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.Registration;
import io.kvasir.registry.SeenKeys;

import org.junit.jupiter.api.Test;

import java.net.URI;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Set;

/** Leases by a clock that the test moves. */
class WatchedWorkersTest {
    private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
    private static final Duration LEASE = Duration.ofSeconds(10);

    private long nowNs;
    private long version;
    private int owners; // that became others
    private final SeenKeys seen = new SeenKeys();
    private final WatchedWorkers workers =
            new WatchedWorkers(
                    "ns/", seen, Clock.fixed(START, ZoneOffset.UTC), () -> nowNs, () -> owners++);

    private ObjectNode object(String namespace, String name, Instant renewed) {
        final Registration r =
                Registration.builder(
                                new InstanceId(namespace, "c", "e", name),
                                "m",
                                URI.create("http://h:1"))
                        .generation(1)
                        .build();
        return WorkerResource.of(
                r.id().key(), r.encode(), Long.toString(++version), renewed, LEASE, null);
    }

    private JsonNode worker(String name, Duration renewedAfterStart) {
        return object("ns", name, START.plus(renewedAfterStart));
    }

    private void passes(Duration time) {
        nowNs += time.toNanos();
    }

    @Test
    void aSilentLeaseEndsWithTheNextListAndARenewalBringsItBack() {
        workers.view(List.of(worker("a", Duration.ZERO)));
        passes(LEASE);
        assertFalse(workers.isOneDue());
        passes(Duration.ofNanos(1));
        assertTrue(workers.isOneDue());
        assertEquals(Set.of("ns/c/e/a"), seen.keys);
        workers.view(List.of(worker("a", Duration.ZERO)));
        assertEquals(Set.of(), seen.keys);
        assertFalse(workers.isOneDue(), "said once");
        workers.changed(worker("a", Duration.ZERO)); // something else of it has changed
        assertEquals(Set.of(), seen.keys);
        workers.changed(worker("a", Duration.ofSeconds(1)));
        assertEquals(Set.of("ns/c/e/a"), seen.keys);
    }

    @Test
    void aRenewalThatTheWatchMissedKeepsIt() {
        workers.view(List.of(worker("a", Duration.ZERO)));
        passes(Duration.ofSeconds(60));
        workers.view(List.of(worker("a", Duration.ofSeconds(1))));
        assertEquals(Set.of("ns/c/e/a"), seen.keys);
        assertFalse(workers.isOneDue());
    }

    @Test
    void aWatchThatBreaksProlongsNoLease() {
        workers.view(List.of(worker("a", Duration.ZERO)));
        for (int i = 0; i < 5; i++) {
            assertEquals(Set.of("ns/c/e/a"), seen.keys);
            passes(LEASE.dividedBy(5));
            workers.lost("cut");
            workers.view(List.of(worker("a", Duration.ZERO)));
        }
        passes(Duration.ofNanos(1));
        workers.lost("cut");
        workers.view(List.of(worker("a", Duration.ZERO)));
        assertEquals(Set.of(), seen.keys);
    }

    @Test
    void anOutageEndsNoLease() {
        workers.view(List.of(worker("a", Duration.ZERO)));
        passes(Duration.ofSeconds(5));
        workers.lost("away");
        workers.unlisted();
        passes(Duration.ofSeconds(60));
        workers.view(List.of(worker("a", Duration.ZERO)));
        assertEquals(Set.of("ns/c/e/a"), seen.keys);
        passes(LEASE.plusNanos(1));
        workers.view(List.of(worker("a", Duration.ZERO)));
        assertEquals(Set.of(), seen.keys);
    }

    @Test
    void whatIsSeenFirstIsJudgedByItsTime() {
        workers.view(
                List.of(
                        worker("dead", Duration.ofSeconds(-11)),
                        worker("buried", Duration.ofDays(-400_000)),
                        worker("old", Duration.ofSeconds(-9)),
                        worker("ahead", Duration.ofHours(1))));
        assertEquals(Set.of("ns/c/e/old", "ns/c/e/ahead"), seen.keys);
        passes(Duration.ofSeconds(2));
        assertTrue(workers.isOneDue());
        workers.view(
                List.of(
                        worker("old", Duration.ofSeconds(-9)),
                        worker("ahead", Duration.ofHours(1))));
        assertEquals(Set.of("ns/c/e/ahead"), seen.keys);
    }

    @Test
    void aClockThatRunsBehindCostsOneRenewal() {
        workers.view(List.of(worker("behind", Duration.ofHours(-1))));
        assertEquals(Set.of(), seen.keys);
        workers.changed(worker("behind", Duration.ofHours(-1).plusSeconds(3)));
        assertEquals(Set.of("ns/c/e/behind"), seen.keys);
    }

    @Test
    void otherNamespacesAreNotSeenAndWithoutALeaseNothingEnds() {
        final ObjectNode unleased = object("ns", "hand", START);
        unleased.remove("lease");
        workers.view(List.of(object("other", "b", START), unleased));
        assertEquals(Set.of("ns/c/e/hand"), seen.keys);
        passes(Duration.ofDays(300));
        assertFalse(workers.isOneDue());
        workers.deleted(unleased);
        assertEquals(Set.of(), seen.keys);
    }

    @Test
    void namesAreThoseOfDnsOrAHash() {
        assertEquals("ns.c.e.a-1", WorkerResource.name("ns/c/e/a-1"));
        for (String key : List.of("ns/c/e/A", "ns/c/e/-a", "ns/c/e/a=2Eb", "ns/c/e/a_b")) {
            assertTrue(WorkerResource.name(key).matches("x-[0-9a-f]{40}"), key);
        }
        assertTrue(WorkerResource.name("ns/c/e/" + "a".repeat(400)).length() <= 253);
    }

    @Test
    void anotherOwnerOfTheSameRegistrationIsSaid() {
        workers.view(List.of(owned("pod-1")));
        workers.changed(owned("pod-1"));
        assertEquals(0, owners);
        workers.changed(owned("pod-2"));
        assertEquals(1, owners);
        assertEquals("pod-2", workers.podUid("ns/c/e/a"));
        workers.changed(worker("a", Duration.ZERO));
        assertEquals(2, owners);
    }

    private JsonNode owned(String podUid) {
        final ObjectNode object = object("ns", "a", START);
        object.withObject("/metadata")
                .putArray("ownerReferences")
                .addObject()
                .put("kind", "Pod")
                .put("uid", podUid);
        return object;
    }
}
