package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.MemoryStore;

import org.junit.jupiter.api.Test;

import java.time.Duration;

/** A router that could not read what is saved when it started. */
class UnrestoredSnapshotsTest {
    private static final EventSubjects NAMES = EventSubjects.kvEvents("ns", "backend", "generate");

    @Test
    void itGivesSnapshotsUpOnceAndNoneFails() throws Exception {
        final NatsAccess access = NatsAccess.of("nats://127.0.0.1:1");
        final LeaseLock lock = new LeaseLock(new MemoryStore(Duration.ofMinutes(1)), "lock");
        final PlaneSnapshots snapshots =
                PlaneSnapshots.open(
                        access,
                        NAMES,
                        new NatsStateStore(access, NAMES.bucket(), lock),
                        new PlaneSnapshotConfig(1, 16, 1, false),
                        _ -> {},
                        Duration.ZERO);
        for (int i = 0; i < 3; i++) {
            assertFalse(snapshots.look(null));
        }
        assertEquals(1, snapshots.status().abandoned().get("unrestored"));
        assertEquals(0, snapshots.status().failed());
        snapshots.close();
    }
}
