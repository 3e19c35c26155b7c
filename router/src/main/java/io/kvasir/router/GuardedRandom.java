package io.kvasir.router;

import io.kvasir.router.policy.RandomSource;

import org.agrona.ErrorHandler;

/**
 * Asks an embedder's {@link RandomSource}, and takes a number of its own where that one throws or
 * answers with a number out of range, which costs no request. Each failure is passed on. Any
 * thread; allocates only where something fails.
 */
final class GuardedRandom implements RandomSource {
    private final RandomSource source;
    private final RandomSource own;
    private final ErrorHandler errors;

    /**
     * @param own cannot fail
     */
    GuardedRandom(RandomSource source, RandomSource own, ErrorHandler errors) {
        this.source = source;
        this.own = own;
        this.errors = errors;
    }

    @Override
    public long nextLong() {
        try {
            return source.nextLong();
        } catch (Exception | LinkageError | AssertionError | StackOverflowError e) {
            failed(e);
            return own.nextLong();
        }
    }

    @Override
    public int nextInt(int bound) {
        try {
            final int number = source.nextInt(bound);
            if (number >= 0 && number < bound) {
                return number;
            }
            failed(new IndexOutOfBoundsException("nextInt(" + bound + ") was " + number));
        } catch (Exception | LinkageError | AssertionError | StackOverflowError e) {
            failed(e);
        }
        return own.nextInt(bound);
    }

    @Override
    public double nextDouble() {
        try {
            final double number = source.nextDouble();
            if (number >= 0 && number < 1) { // false where it is NaN
                return number;
            }
            failed(new IndexOutOfBoundsException("nextDouble() was " + number + ", not in [0, 1)"));
        } catch (Exception | LinkageError | AssertionError | StackOverflowError e) {
            failed(e);
        }
        return own.nextDouble();
    }

    private void failed(Throwable cause) {
        errors.onError(new IllegalStateException("the random source failed", cause));
    }
}
