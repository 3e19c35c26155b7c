package io.kvasir.testsupport;

/**
 * How long a random test goes on: few trials in {@code mvn verify}, all of them in {@code mvn
 * verify -Pintegration}, which says {@code -Dkvasir.trials=all} and runs the tests with the tag
 * {@code trials} once more.
 */
public final class Trials {
    private static final boolean ALL = "all".equals(System.getProperty("kvasir.trials"));

    private Trials() {}

    /**
     * Returns the number of trials of this run.
     *
     * @param few for every build: enough to find what most changes break, in a fraction of a second
     * @param all for a long run
     * @return one of the two
     */
    public static int of(int few, int all) {
        return ALL ? all : few;
    }
}
