package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.router.replica.ReplicaHub;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.util.Random;

/** A service for which there is no memory. */
@Isolated // what it limits is the process's
class SlotsMemoryTest {
    private static final SlotsConfig CONFIG = SlotsConfig.of("127.0.0.1", 0);

    @Test
    void theLinkOfAServiceThatCannotBeMadeIsClosed() {
        final ReplicaHub.HubLink link = new ReplicaHub(new Random(1)).open();
        System.setProperty("kvasir.memory.limit", Long.toString(OffHeap.allocatedBytes()));
        try {
            assertThrows(
                    OutOfMemoryError.class,
                    () -> new SlotsService(CONFIG, SlotsReplication.of(link)));
        } finally {
            System.clearProperty("kvasir.memory.limit");
        }
        assertFalse(link.send(null), "the link is open");
    }
}
