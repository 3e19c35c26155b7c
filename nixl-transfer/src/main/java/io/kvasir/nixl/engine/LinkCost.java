package io.kvasir.nixl.engine;

/**
 * Nanoseconds of a request as {@code a · descriptors + b · bytes}, by least squares that forget:
 * each request weighs {@value #KEPT} of the one after it. Normal equations of two unknowns; where
 * they cannot be separated (all requests have descriptors of one size), the sum of both is right
 * all the same. One thread learns, any may ask.
 */
final class LinkCost {
    private static final double KEPT = 0.98;

    /** Below this share of the product of the diagonal, the two unknowns cannot be separated. */
    private static final double SINGULAR = 1e-6;

    private double countsCounts;
    private double countsBytes;
    private double bytesBytes;
    private double countsNs;
    private double bytesNs;

    private volatile double perDescriptor = Double.NaN;
    private volatile double perByte = Double.NaN;

    void learn(long descriptors, long bytes, long ns) {
        countsCounts = countsCounts * KEPT + (double) descriptors * descriptors;
        countsBytes = countsBytes * KEPT + (double) descriptors * bytes;
        bytesBytes = bytesBytes * KEPT + (double) bytes * bytes;
        countsNs = countsNs * KEPT + (double) descriptors * ns;
        bytesNs = bytesNs * KEPT + (double) bytes * ns;
        solve();
    }

    private void solve() {
        final double diagonal = countsCounts * bytesBytes;
        final double determinant = diagonal - countsBytes * countsBytes;
        double descriptor = 0;
        double single = bytesNs / bytesBytes;
        if (determinant > SINGULAR * diagonal) {
            final double bothDescriptor =
                    (countsNs * bytesBytes - bytesNs * countsBytes) / determinant;
            final double bothByte = (bytesNs * countsCounts - countsNs * countsBytes) / determinant;
            if (bothByte < 0) { // only the descriptors count
                descriptor = countsNs / countsCounts;
                single = 0;
            } else if (bothDescriptor >= 0) {
                descriptor = bothDescriptor;
                single = bothByte;
            }
        }
        perDescriptor = descriptor;
        perByte = single;
    }

    double expectedNs(long descriptors, long bytes) {
        return perDescriptor * descriptors + perByte * bytes;
    }
}
