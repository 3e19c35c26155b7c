package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.Descriptors;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A peer's memory as the other end of transfers, and what is known of the way there. From {@link
 * TransferEngine#link}. Any thread may read; the engine's thread writes.
 *
 * <p>The cost of a transfer is learned as a straight line through what transfers took: so much a
 * descriptor and so much a byte. Both are found by exponentially forgetting least squares over the
 * transfers' descriptors and bytes, so transfers of several sizes are needed to tell them apart.
 */
public final class KvLink {
    private final TransferEngine engine; // whose transport has the list
    private final String peer;
    private final long list;
    private final Descriptors descriptors;
    private final LinkCost cost = new LinkCost();
    private volatile String lost; // why, null while it is up
    private boolean listTaken; // this and the next are of the engine's thread
    private boolean forgotten;
    private final AtomicLong bytes = new AtomicLong(); // these three have one writer
    private final AtomicLong transfers = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();

    KvLink(TransferEngine engine, String peer, long list, Descriptors descriptors) {
        this.engine = engine;
        this.peer = peer;
        this.list = list;
        this.descriptors = descriptors;
    }

    /**
     * Whose memory it is.
     *
     * @return the peer's name
     */
    public String peer() {
        return peer;
    }

    TransferEngine engine() {
        return engine;
    }

    long list() {
        return list;
    }

    Descriptors descriptors() {
        return descriptors;
    }

    /**
     * Whether transfers over it can succeed; a lost one stays lost, make another.
     *
     * @return false once a transfer has failed or the link was given up
     */
    public boolean isUp() {
        return lost == null;
    }

    /**
     * Why it is lost.
     *
     * @return null while it is up
     */
    public String lostBecause() {
        return lost;
    }

    /**
     * Bytes moved over it.
     *
     * @return of finished requests
     */
    public long bytes() {
        return bytes.get();
    }

    /**
     * Transfers that ended well.
     *
     * @return how many
     */
    public long transfers() {
        return transfers.get();
    }

    /**
     * Transfers that failed, expired or were cancelled.
     *
     * @return how many
     */
    public long failures() {
        return failures.get();
    }

    /**
     * What a transfer is expected to take.
     *
     * @param descriptorCount descriptors moved, neighbours counted apart
     * @param byteCount bytes in all
     * @return nanoseconds; NaN as long as nothing was moved over the link
     */
    public double expectedNs(long descriptorCount, long byteCount) {
        return cost.expectedNs(descriptorCount, byteCount);
    }

    void moved(long descriptorCount, long byteCount, long ns) {
        add(bytes, byteCount);
        cost.learn(descriptorCount, byteCount, ns);
    }

    void ended(boolean well) {
        add(well ? transfers : failures, 1);
    }

    private static void add(AtomicLong counter, long more) {
        counter.lazySet(counter.getPlain() + more);
    }

    void lose(String why) {
        if (lost == null) {
            lost = why;
        }
    }

    /** Whether the list is still to be given back; once. */
    boolean takeList() {
        final boolean first = !listTaken;
        listTaken = true;
        return first;
    }

    /** The transport has nothing of it any more. */
    void forget() {
        forgotten = true;
    }

    boolean isForgotten() {
        return forgotten;
    }

    @Override
    public String toString() {
        return "KvLink[" + peer + (lost == null ? "]" : ", lost: " + lost + "]");
    }
}
