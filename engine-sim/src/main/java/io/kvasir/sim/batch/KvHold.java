package io.kvasir.sim.batch;

import java.util.List;

/**
 * A prefill whose blocks stay in use after its end, until another engine has pulled them. Made with
 * the request, filled by the step loop before the request is reported as finished.
 */
public final class KvHold {
    /** How a hold ends. */
    public enum End {
        PULLED,
        NOTIFIED,
        LEASE_END
    }

    final String key;
    final boolean answeredAfterPull;
    final boolean onlyAtLength;

    // step loop only
    long endNs;
    long number;

    // written before the phase that tells of it
    List<Integer> blocks;
    String record;
    int firstBlock;

    /**
     * Describes a hold.
     *
     * @param key request id or room by which it is pulled
     * @param answeredAfterPull whether the prefill is finished when its blocks were pulled, and not
     *     when they are computed
     * @param onlyAtLength whether an answer that ends by itself leaves nothing to be pulled
     */
    public KvHold(String key, boolean answeredAfterPull, boolean onlyAtLength) {
        this.key = key;
        this.answeredAfterPull = answeredAfterPull;
        this.onlyAtLength = onlyAtLength;
    }

    /** By which it is pulled. */
    public String key() {
        return key;
    }

    /** Whether the prefill is finished when its blocks were pulled. */
    public boolean answeredAfterPull() {
        return answeredAfterPull;
    }

    /** Ids of the blocks; null before the prefill is finished. */
    public List<Integer> blocks() {
        return blocks;
    }
}
