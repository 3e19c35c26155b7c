package io.kvasir.testsupport;

/**
 * How long a random test goes on, by {@code -Dkvasir.trials}: {@code few} in {@code mvn verify};
 * {@code many} in {@code mvn verify -Pintegration}, which runs the tests with the tag {@code
 * trials} once more; {@code all} where that is given.
 */
public final class Trials {
    private static final String TRIALS = System.getProperty("kvasir.trials", "few");
    private static final int PART = 4;

    private Trials() {}

    /**
     * Returns the number of trials of this run.
     *
     * @param few for every build: enough to find what most changes break, in a fraction of a second
     * @param all for a long run
     * @return one of the two; between them, a quarter of all, but not below few
     */
    public static int of(int few, int all) {
        return of(TRIALS, few, all);
    }

    static int of(String trials, int few, int all) {
        return switch (trials) {
            case "few" -> few;
            case "many" -> Math.max(few, all / PART);
            case "all" -> all;
            default ->
                    throw new IllegalArgumentException(
                            "kvasir.trials=" + trials + " is none of few, many, all");
        };
    }
}
