package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

class SequenceGapsTest {
    private final SequenceGaps gaps = new SequenceGaps();

    private long take(long... sequences) {
        long lost = 0;
        for (long sequence : sequences) {
            lost += gaps.take(sequence);
        }
        return lost;
    }

    @Test
    void whatComesLateOrTwiceIsNotLost() {
        assertEquals(0, take(100, 102, 101, 102, 100, 104, 103, 1));
        assertEquals(0, take(105 + 63));
        assertEquals(63, take(105 + 64 + 63), "105 to 167 never came");
    }

    @Test
    void aLongGapIsLostWhenItIsPassed() {
        assertEquals(0, take(1));
        assertEquals(1_000_000 - 2 - 63, take(1_000_000));
        assertEquals(63, take(1_000_000 + 64));
    }

    @Test
    void countsWhatIsMissingWhateverTheOrder() {
        final Random random = new Random(Seeds.next("SequenceGapsTest"));
        final List<Long> sent = new ArrayList<>();
        int missing = 0;
        for (long i = 2; i < 5_000; i++) {
            if (random.nextInt(10) == 0) {
                missing++;
            } else {
                sent.add(i);
            }
        }
        for (int i = 0; i + 8 < sent.size(); i += 8) {
            Collections.shuffle(sent.subList(i, i + 8), random);
        }
        long lost = take(1);
        for (long sequence : sent) {
            lost += take(sequence);
        }
        lost += take(5_000, 5_063, 5_127);
        assertEquals(missing + (5_062 - 5_000), lost);
    }
}
