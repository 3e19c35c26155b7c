package io.kvasir.testsupport;

import java.util.concurrent.ThreadLocalRandom;

/** Seeds of random tests: printed by every test that uses one, replayed with {@code -Dseed=}. */
public final class Seeds {
    private Seeds() {}

    /**
     * Returns the seed of this test run and prints it with the test's name.
     *
     * @param test what is being tested, for the line that is printed
     * @return the value of {@code -Dseed=} when given, else a fresh random one
     * @throws NumberFormatException if {@code -Dseed=} is not a decimal 64-bit number
     */
    public static long next(String test) {
        final String given = System.getProperty("seed");
        final long seed =
                given == null ? ThreadLocalRandom.current().nextLong() : Long.parseLong(given);
        System.out.println(test + ": replay with -Dseed=" + seed);
        return seed;
    }
}
