package io.kvasir.pipeline.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

import java.util.concurrent.TimeUnit;

class LogLimitTest {
    private static final long SECOND_NS = TimeUnit.SECONDS.toNanos(1);

    @Test
    void soManyLinesPassInAPeriodAndTheLastOneSaysIt() {
        final LogLimit limit = new LogLimit(3, 10 * SECOND_NS);
        long nowNs = Long.MAX_VALUE - 15 * SECOND_NS; // the clock runs over
        assertEquals("", limit.take(nowNs));
        nowNs += 5 * SECOND_NS;
        assertEquals("", limit.take(nowNs));
        nowNs += 1;
        assertEquals(" (of further ones nothing is said for 5 s)", limit.take(nowNs));
        assertNull(limit.take(nowNs));
        nowNs += 4 * SECOND_NS;
        assertNull(limit.take(nowNs));
        nowNs += SECOND_NS;
        assertEquals(" (2 lines like this were left out before it)", limit.take(nowNs));
        assertEquals("", limit.take(nowNs), "said once");
        nowNs += 30 * SECOND_NS;
        assertEquals("", limit.take(nowNs), "a new period");
    }

    @Test
    void aLimitOfOneLineSaysBoth() {
        final LogLimit limit = new LogLimit(1, 10 * SECOND_NS);
        assertEquals(" (of further ones nothing is said for 10 s)", limit.take(0));
        assertNull(limit.take(SECOND_NS));
        assertEquals(
                " (1 lines like this were left out before it)"
                        + " (of further ones nothing is said for 10 s)",
                limit.take(11 * SECOND_NS));
    }

    @Test
    void tenThousandLinesAtOnceAreAFew() {
        final LogLimit limit = new LogLimit();
        int lines = 0;
        for (int i = 0; i < 10_000; i++) {
            lines += limit.take(i / 1_000) == null ? 0 : 1;
        }
        assertEquals(LogLimit.LINES, lines);
    }
}
