package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import org.junit.jupiter.api.Test;

import java.util.SplittableRandom;

/** How large an index is by the settings, and that what is promised fits. */
class IndexSizeTest {
    private static Settings.Builder settings() {
        return Settings.builder(RouterSettings.TABLE);
    }

    @Test
    void whatIsNotSetGrowsToAShareOfTheMemory() {
        final PrefixIndexConfig smallest =
                RouterConfig.index(settings().set(RouterSettings.INDEX_MEMORY_SHARE, 0.0).build());
        assertEquals(1L << 20, smallest.maxBlocks());
        assertEquals(2L << 20, smallest.maxHeldBlocks());
        final PrefixIndexConfig large =
                RouterConfig.index(settings().set(RouterSettings.INDEX_MEMORY_SHARE, 0.9).build());
        assertTrue(large.maxHeldBlocks() > smallest.maxHeldBlocks(), large.toString());
        assertEquals(large.maxHeldBlocks(), large.maxBlocks());
        assertTrue(large.budgetBytes() <= RouterSettings.MAX_INDEX_BYTES);
    }

    @Test
    void aLimitThatIsSetIsTheLimit() {
        final PrefixIndexConfig config =
                RouterConfig.index(settings().set(RouterSettings.MAX_BLOCKS, 5_000L).build());
        assertEquals(5_000, config.maxBlocks());
        assertEquals(10_000, config.maxHeldBlocks());
    }

    @Test
    void moreThanSixtyFourWorkersCanBeRegisteredByDefault() {
        try (KvRouter router = KvRouter.builder().build()) {
            for (int i = 0; i < 100; i++) {
                router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
            }
            assertEquals(100, router.workers().size());
        }
    }

    /** Prompts of 8 blocks and more fit up to the limits, also when they come block by block. */
    @Test
    void theBudgetOfTheLimitsHasRoomForThem() {
        final int workers = 8;
        final long limit = 1 << 13;
        for (int length : new int[] {8, 16, 33, 200}) {
            try (PrefixIndex index =
                    new PrefixIndex(new PrefixIndexConfig(workers, limit, limit))) {
                final SplittableRandom random = new SplittableRandom(length);
                final long[] name = new long[1];
                final long[] local = new long[1];
                for (int prompt = 0; index.heldBlocks() + length <= limit; prompt++) {
                    long parent = 0;
                    for (int i = 0; i < length; i++) {
                        name[0] = random.nextLong();
                        local[0] = random.nextLong();
                        assertEquals(
                                StoreResult.STORED,
                                index.store(
                                        prompt % workers, i == 0, parent, name, local, 1, false),
                                "of " + length + " blocks, held: " + index.heldBlocks());
                        parent = name[0];
                    }
                }
            }
        }
    }
}
