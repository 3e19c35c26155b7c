package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HugePagesTest {
    private static final long SMALL_PAGE = 4 << 10;
    private static final long LARGE_PAGE = 2 << 20;

    /** What lies behind it is someone else's. */
    @ParameterizedTest
    @ValueSource(
            longs = {
                LARGE_PAGE,
                LARGE_PAGE + 1,
                LARGE_PAGE + SMALL_PAGE,
                LARGE_PAGE + (64 << 10),
                3 * LARGE_PAGE - 1
            })
    void whatIsGivenBackIsInsideOfWhatWasMapped(long length) {
        for (long start = LARGE_PAGE; start < 2 * LARGE_PAGE; start += SMALL_PAGE) {
            final long end = HugePages.aligned(start) + HugePages.kept(length);
            final long over = end - start - HugePages.mapped(length);
            assertTrue(over <= 0, over + " bytes beyond a mapping at " + start);
        }
    }
}
