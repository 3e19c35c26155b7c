package io.kvasir.core.load;

/**
 * Layout of one visit in the ring of {@link PredictedPrefixes}.
 *
 * <pre>
 *   0              8          12         16         20         24
 *   +--------------+----------+----------+----------+----------+
 *   | time         | slot     | end array| end offs.| unused   |
 *   +--------------+----------+----------+----------+----------+
 *   slot   -1 = taken back already
 *   end    first segment of the array in which the path ends, and the offset of its last block there
 * </pre>
 */
final class VisitDescriptor {
    static final int TIME_OFFSET = 0;
    static final int SLOT_OFFSET = TIME_OFFSET + Long.BYTES;
    static final int ARRAY_OFFSET = SLOT_OFFSET + Integer.BYTES;
    static final int END_OFFSET = ARRAY_OFFSET + Integer.BYTES;
    private static final int UNUSED_OFFSET = END_OFFSET + Integer.BYTES;
    static final int LENGTH = UNUSED_OFFSET + Integer.BYTES;
    static final int NO_SLOT = -1;

    private VisitDescriptor() {}

    static long offset(int visit) {
        return (long) visit * LENGTH;
    }
}
