package io.kvasir.nixl.exchange;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What all exchanges answer from the records that they know. For implementations, which feed {@link
 * #view} with what they receive. Any thread.
 */
public abstract class ViewedExchange implements MetadataExchange {
    /** The records that are known. */
    protected final PeerDirectory view = new PeerDirectory();

    private final AtomicLong malformed = new AtomicLong();

    /** Knows no record yet. */
    protected ViewedExchange() {}

    @Override
    public final PeerRecord find(String name, Duration patience) {
        return view.find(name, patience);
    }

    @Override
    public final Watch watch(String name, Listener listener) {
        return view.watch(name, listener);
    }

    /** Counts something that was received and could not be read. */
    protected final void countMalformed() {
        malformed.incrementAndGet();
    }

    /**
     * What was received and could not be read: values that are no records, questions and answers
     * that are none.
     *
     * @return count since the start
     */
    public final long malformed() {
        return malformed.get();
    }

    /**
     * Records that were ignored because {@value MetadataExchange#MAX_RECORDS} are known.
     *
     * @return count since the start
     */
    public final long refused() {
        return view.refused();
    }
}
