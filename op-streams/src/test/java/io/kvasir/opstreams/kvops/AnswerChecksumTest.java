package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class AnswerChecksumTest {
    @Test
    void mixIsOneStepOfSplitmix64() {
        assertEquals(0xE220A8397B1DCDAFL, AnswerChecksum.mix(0)); // first number of seed 0
        assertEquals(
                0x6E789E6AA1B965F4L, AnswerChecksum.mix(0x9E3779B97F4A7C15L)); // and the second
    }

    @Test
    void aScoreOfZeroIsNoPartOfTheAnswer() {
        assertEquals(0, AnswerChecksum.of(3, 0));
        assertEquals(AnswerChecksum.mix(3L << 32 | 7), AnswerChecksum.of(3, 7));
    }
}
