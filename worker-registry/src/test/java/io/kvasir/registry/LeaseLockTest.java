package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

class LeaseLockTest {
    private static final String KEY = "lock";
    private static final Duration NEVER = Duration.ofDays(1);

    private final MemoryStore memory = new MemoryStore(NEVER);
    private final FaultyStore firstStore = new FaultyStore(memory);
    private final LeaseLock first = new LeaseLock(firstStore, KEY);
    private final LeaseLock second = new LeaseLock(memory, KEY);
    private final List<String> warnings = new ArrayList<>();
    private final FaultyStore lateStore = new FaultyStore(memory);
    private long nowNs = -1;
    private final LeaseLock late = new LeaseLock(lateStore, KEY, warnings::add, () -> nowNs);

    @AfterEach
    void close() {
        first.close();
        second.close();
        late.close();
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
    void anErrorOfARenewalEndsNoneOfThoseAfterIt() throws InterruptedException {
        final FaultyStore faulty = new FaultyStore(new MemoryStore(Duration.ofMillis(30)));
        try (LeaseLock lock = new LeaseLock(faulty, KEY)) {
            assertTrue(lock.take());
            faulty.broken(true);
            Eventually.holds("two tries", () -> faulty.errors() > 1);
            faulty.broken(false);
            lock.check();
        }
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
    void whatNobodyRenewsIsTakenOverWhereTheStoreDoesNotEndIt() {
        for (byte[] left : new byte[][] {"killed".getBytes(StandardCharsets.US_ASCII), {}}) {
            memory.force(KEY, left);
            assertFalse(late.take());
            passed(NEVER.multipliedBy(3));
            assertFalse(late.take(), "a renewal may be on its way");
            passed(Duration.ofNanos(1));
            assertTrue(late.take());
            late.check();
            assertFalse(second.take());
            late.release();
        }
        assertEquals(4, warnings.size(), warnings::toString);
        assertTrue(warnings.get(0).contains("memory:lock"), warnings::toString);
        assertTrue(warnings.get(1).contains("taken over"), warnings::toString);
    }

    @Test
    void aLockThatIsRenewedIsTakenOverByNobody() {
        assertTrue(first.take());
        for (int i = 0; i < 8; i++) {
            assertFalse(late.take());
            passed(NEVER.multipliedBy(2));
            first.check();
        }
        assertEquals(List.of(), warnings);
    }

    @Test
    void whoWasTakenForDeadAndIsNotFindsItAtItsNextCheck() {
        assertTrue(first.take());
        assertFalse(late.take());
        passed(NEVER.multipliedBy(4));
        assertTrue(late.take());
        assertThrows(IllegalStateException.class, first::check);
        late.check();
    }

    @Test
    void aTakeOverWhoseAnswerWasLostIsOnesOwn() {
        assertTrue(first.take());
        assertFalse(late.take());
        passed(NEVER.multipliedBy(4));
        lateStore.deaf(true);
        assertThrows(RegistryException.class, late::take);
        lateStore.deaf(false);
        assertTrue(late.take());
        late.check();
    }

    @Test
    void whereARenewalLeavesTheRevisionNothingIsTakenOver() {
        final LeaseLock lock =
                new LeaseLock(
                        new FaultyStore(memory) {
                            @Override
                            public boolean renewsRevisions() {
                                return false;
                            }
                        },
                        KEY,
                        warnings::add,
                        () -> nowNs);
        assertTrue(first.take());
        assertFalse(lock.take());
        passed(NEVER.multipliedBy(8));
        assertFalse(lock.take());
        assertEquals(List.of(), warnings);
    }

    @Test
    void aLockThatStaysForLongIsSaidOnce() {
        memory.force(KEY, new byte[1]);
        for (int i = 0; i < 8; i++) {
            assertFalse(late.take());
            passed(Duration.ofMinutes(1));
        }
        assertEquals(1, warnings.size(), warnings::toString);
        assertTrue(warnings.get(0).contains("has not renewed it"), warnings::toString);
    }

    private void passed(Duration time) {
        nowNs += time.toNanos();
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
