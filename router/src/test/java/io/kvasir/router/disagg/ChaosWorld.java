package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** What all parts of a story share: time, chance, and what went wrong. */
final class ChaosWorld {
    final Random random;
    final VirtualTime time;

    /** What must not happen but did. */
    final List<String> violations = new ArrayList<>();

    ChaosWorld(long seed) {
        this.random = new Random(seed);
        this.time = new VirtualTime(random);
    }

    boolean chance(int percent) {
        return random.nextInt(100) < percent;
    }

    /** Between two times in steps of 50 ms, so that much happens in the same moment. */
    long drawMs(long fromMs, long toMs) {
        return fromMs + 50L * random.nextInt((int) ((toMs - fromMs) / 50) + 1);
    }

    <T> T any(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    void violated(String what) {
        violations.add(what);
    }
}
