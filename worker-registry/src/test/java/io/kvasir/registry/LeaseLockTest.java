package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

class LeaseLockTest {
    private static final String KEY = "lock";
    private static final Duration NEVER = Duration.ofDays(1);

    private final MemoryStore memory = new MemoryStore(NEVER);
    private final FaultyStore firstStore = new FaultyStore(memory);
    private final LeaseLock first = new LeaseLock(firstStore, KEY);
    private final LeaseLock second = new LeaseLock(memory, KEY);

    @AfterEach
    void close() {
        first.close();
        second.close();
    }

    @Test
    void oneHasItUntilItIsGivenBack() {
        assertFalse(first.isHeld());
        assertTrue(first.take());
        assertTrue(first.take(), "it has it since earlier");
        assertFalse(second.take());
        first.check();
        first.release();
        first.release();
        assertFalse(first.isHeld());
        assertTrue(second.take());
        second.check();
    }

    @Test
    void whoHasItNotCannotActAsIfItHad() {
        assertThrows(IllegalStateException.class, first::check);
        assertTrue(second.take());
        assertFalse(first.take());
        assertThrows(IllegalStateException.class, first::check);
        first.release();
        second.check();
    }

    @Test
    void whoWasStoppedForTooLongFindsItAtItsNextCheckAndTakesNothingFromTheNextHolder() {
        assertTrue(first.take());
        memory.expire(KEY);
        assertTrue(second.take());
        assertTrue(first.isHeld(), "it cannot know yet");
        assertThrows(IllegalStateException.class, first::check);
        assertFalse(first.isHeld());
        first.release();
        second.check();
        assertFalse(first.take());
    }

    @Test
    void aLockThatHasEndedIsLostThoughNobodyTookIt() {
        assertTrue(first.take());
        memory.expire(KEY);
        assertThrows(IllegalStateException.class, first::check);
        assertTrue(first.take(), "and may be taken again");
    }

    @Test
    void aHolderThatCannotAskKnowsNothingAndGoesOnLater() {
        assertTrue(first.take());
        firstStore.cutOff(true);
        assertThrows(RegistryException.class, first::check);
        assertTrue(first.isHeld());
        firstStore.cutOff(false);
        first.check();
    }

    @Test
    void whatWasWrittenThoughTheAnswerWasLostIsOnesOwn() {
        firstStore.deaf(true);
        assertThrows(RegistryException.class, first::take);
        firstStore.deaf(false);
        assertTrue(first.take());
        firstStore.deaf(true);
        assertThrows(RegistryException.class, first::check);
        firstStore.deaf(false);
        first.check();
        assertFalse(second.take());
    }

    @Test
    void itIsRenewedBeforeItEnds() throws InterruptedException {
        final MemoryStore shortLived = new MemoryStore(Duration.ofMillis(30));
        final LeaseLock lock = new LeaseLock(shortLived, KEY);
        assertTrue(lock.take());
        final long revision = shortLived.get(KEY).revision();
        final long sinceNs = System.nanoTime();
        while (shortLived.get(KEY).revision() == revision) {
            assertTrue(System.nanoTime() - sinceNs < TimeUnit.MINUTES.toNanos(1), "no renewal");
            Thread.sleep(1);
        }
        lock.close();
        assertNull(shortLived.get(KEY));
    }

    @Test
    void aClosedOneTakesNothing() {
        assertTrue(first.take());
        assertNotNull(memory.get(KEY));
        first.close();
        first.close();
        assertNull(memory.get(KEY));
        assertFalse(first.take());
        assertThrows(IllegalStateException.class, first::check);
    }

    @Test
    void itsNameSaysWhereItIs() {
        assertEquals("memory:lock", first.toString());
    }
}
