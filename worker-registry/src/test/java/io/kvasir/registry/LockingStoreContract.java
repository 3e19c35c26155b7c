package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

/** What a {@link LeasedStore} keeps to that takes values of any kind, locks among them. */
public abstract class LockingStoreContract extends LeasedStoreContract {
    @Test
    void aLockIsHadByOneAndEndsWithAHolderThatIsSilent() throws Exception {
        final FaultyStore firstStore = new FaultyStore(open(SHORT_TTL));
        final LeaseLock first = closing(new LeaseLock(firstStore, "locks/a"));
        final LeaseLock second = closing(new LeaseLock(open(SHORT_TTL), "locks/a"));
        assertTrue(first.take());
        assertFalse(second.take());
        first.check();
        firstStore.cutOff(true);
        Eventually.holds("the silent holder's lock ends", second::take);
        firstStore.cutOff(false);
        assertThrows(IllegalStateException.class, first::check);
        second.check();
        assertFalse(first.take());
        second.release();
        assertTrue(first.take());
        first.check();
    }
}
