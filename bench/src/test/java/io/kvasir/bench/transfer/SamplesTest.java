package io.kvasir.bench.transfer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.List;

class SamplesTest {
    @Test
    void figuresAreKeptByWhatWasMeasuredAndByWhom() {
        final Samples samples = new Samples();
        samples.add("make", "C", 3);
        samples.add("post", "C", 7);
        samples.add("make", "C", 1);
        samples.add("make", "C", 2);
        assertEquals(List.of("make", "post"), samples.names());
        assertEquals(2, samples.median("make", "C"));
        assertEquals("2.0 (1.0–3.0)", Samples.spread(samples.of("make", "C"), 1));
    }

    @Test
    void whatWasNotMeasuredIsNoNumber() {
        final Samples samples = new Samples();
        assertEquals(Double.NaN, samples.median("make", "Java"));
        assertEquals("-", Samples.spread(samples.of("make", "Java"), 1));
    }
}
