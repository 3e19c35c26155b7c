package io.kvasir.bench.gpu;

/**
 * Repeats work until the compilers have seen enough of it, so that the first figures are not of the
 * interpreter.
 */
final class WarmUp {
    private static final int MOST = 20_000;
    private static final long LONGEST_NANOS = 200_000_000;

    private WarmUp() {}

    static void run(Runnable work) {
        final long end = System.nanoTime() + LONGEST_NANOS;
        for (int i = 0; i < MOST && System.nanoTime() - end < 0; i++) {
            work.run();
        }
    }
}
