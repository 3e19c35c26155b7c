package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class LogLimitTest {
    @Test
    void soManyLinesPassInAPeriodAndTheLastOneIsKnown() {
        final LogLimit limit = new LogLimit(3, 10);
        long nowNs = Long.MAX_VALUE - 15; // the clock runs over
        assertEquals(2, limit.take(nowNs));
        nowNs += 5;
        assertEquals(1, limit.take(nowNs));
        assertEquals(0, limit.take(nowNs));
        assertEquals(-1, limit.take(nowNs));
        nowNs += 4;
        assertEquals(-1, limit.take(nowNs));
        nowNs += 1;
        assertEquals(2, limit.take(nowNs), "a new period");
        nowNs += 30;
        assertEquals(2, limit.take(nowNs));
    }

    @Test
    void tenThousandLinesAtOnceAreAFew() {
        final LogLimit limit = new LogLimit(20, 10);
        int lines = 0;
        for (int i = 0; i < 10_000; i++) {
            lines += limit.take(i / 1_000) < 0 ? 0 : 1;
        }
        assertEquals(20, lines);
    }
}
