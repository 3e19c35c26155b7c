package io.kvasir.nixl.engine;

/** Requests that are posted, as columns; the last one moves into a gap. One thread. */
final class InFlight {
    private final long[] handles;
    private final Transfer[] transfers;
    private final int[] stages;
    private final int[] descriptors;
    private final long[] bytes;
    private final long[] startNs;
    private final boolean[] ended; // but could not be released
    private int count;
    private long allBytes;

    InFlight(int capacity) {
        handles = new long[capacity];
        transfers = new Transfer[capacity];
        stages = new int[capacity];
        descriptors = new int[capacity];
        bytes = new long[capacity];
        startNs = new long[capacity];
        ended = new boolean[capacity];
    }

    void add(
            long handle,
            Transfer transfer,
            int stage,
            int descriptorCount,
            long byteCount,
            long nowNs) {
        handles[count] = handle;
        transfers[count] = transfer;
        stages[count] = stage;
        descriptors[count] = descriptorCount;
        bytes[count] = byteCount;
        ended[count] = false;
        startNs[count++] = nowNs;
        allBytes += byteCount;
    }

    /** Forgets one; another one has its place then. */
    void remove(int i) {
        allBytes -= bytes[i];
        final int last = --count;
        handles[i] = handles[last];
        transfers[i] = transfers[last];
        stages[i] = stages[last];
        descriptors[i] = descriptors[last];
        bytes[i] = bytes[last];
        startNs[i] = startNs[last];
        ended[i] = ended[last];
        transfers[last] = null;
    }

    int count() {
        return count;
    }

    boolean isFull() {
        return count == handles.length;
    }

    /** Bytes of all of them. */
    long bytes() {
        return allBytes;
    }

    long handle(int i) {
        return handles[i];
    }

    Transfer transfer(int i) {
        return transfers[i];
    }

    int stage(int i) {
        return stages[i];
    }

    int descriptors(int i) {
        return descriptors[i];
    }

    long bytes(int i) {
        return bytes[i];
    }

    long startNs(int i) {
        return startNs[i];
    }

    /** Whether one of them goes over a link. */
    boolean isUsed(KvLink link) {
        for (int i = 0; i < count; i++) {
            if (transfers[i].link == link) {
                return true;
            }
        }
        return false;
    }

    /** Whether it is over and only its handle is left. */
    boolean isEnded(int i) {
        return ended[i];
    }

    void markEnded(int i) {
        ended[i] = true;
    }
}
