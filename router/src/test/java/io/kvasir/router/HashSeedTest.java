package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.hash.TokenHasher;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;

/**
 * Blocks of other tokens with the same public hash, found by a birthday search in some seconds,
 * must not pass for each other.
 */
class HashSeedTest {
    private static final int BLOCK_SIZE = 16;

    private static final int[] PROMPT = {
        45031, 47556, 22481, 3172, 36781, 14071, 8856, 18519, 47328, 18706, 37945, 49151, 39971,
        3846, 28128, 43553, 25588, 29849, 13248, 3660, 35458, 21941, 15886, 9421, 7992, 13127,
        30234, 122, 4153, 26430, 46359, 9412, 36887, 9277, 27457, 3635, 44044, 14496, 2161, 41769,
        6621, 29253, 38554, 33724, 47304, 37385, 32491, 23951, 1
    };

    private static final int[] FORGED = {
        3803, 26311, 48743, 43566, 8324, 29899, 35951, 10723, 23608, 43096, 33771, 20285, 41646,
        29364, 24944, 8406, 31347, 14926, 10664, 44553, 652, 19398, 17438, 39367, 1886, 19819,
        20775, 7671, 9273, 3087, 7119, 48573, 935, 39964, 8147, 38123, 18546, 7602, 47705, 33949,
        9827, 43105, 22164, 31555, 23280, 38115, 7765, 34475
    };

    private static int found(Long seed, int[] announced) throws RouteException {
        final RouterConfig.Builder builder =
                KvRouter.builder().blockSize(BLOCK_SIZE).maxWorkers(4).maxBlocks(64, 64);
        if (seed != null) {
            builder.set(RouterSettings.HASH_SEED, seed);
        }
        try (KvRouter router = builder.build()) {
            final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "x"));
            router.openDirect(worker, EngineMessages.source("w", BLOCK_SIZE))
                    .onMessage(0, EngineMessages.stored(announced, 3, BLOCK_SIZE, 0));
            Eventually.holds("the event", worker::ready);
            final Decision decision = new Decision();
            router.select(router.newRequest().tokens(PROMPT, PROMPT.length), decision);
            return decision.predictedCachedTokens();
        }
    }

    @Test
    void theTwoPromptsHaveTheSamePublicHashes() throws RouteException {
        final long[] hashes = new long[3];
        final long[] forged = new long[3];
        new TokenHasher()
                .localHashes(PROMPT, 0, 3 * BLOCK_SIZE, BLOCK_SIZE, BlockHasher.BASE_SEED, hashes);
        BlockHasher.localHashes(
                FORGED, 0, 3 * BLOCK_SIZE, BLOCK_SIZE, BlockHasher.BASE_SEED, forged);

        assertEquals(Arrays.toString(hashes), Arrays.toString(forged));
        assertEquals(3 * BLOCK_SIZE, found(BlockHasher.BASE_SEED, FORGED));
    }

    @Test
    void byDefaultTheSeedIsNotKnownAndAForgedBlockCreditsNothing() throws RouteException {
        assertEquals(0, found(null, FORGED));
        assertEquals(3 * BLOCK_SIZE, found(null, PROMPT));
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 42, -1})
    void anySeedWillDo(long seed) throws RouteException {
        assertEquals(0, found(seed, FORGED));
        assertEquals(3 * BLOCK_SIZE, found(seed, PROMPT));
    }
}
