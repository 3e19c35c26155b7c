package io.kvasir.sim.batch;

import java.util.List;

/**
 * Answer of a prefill engine to a {@link PullOrder}.
 *
 * @param tokens prompt tokens that are held; 0 with an error
 * @param print {@link KvPrint} of them
 * @param blocks ids of the held blocks, in order
 * @param record how to reach the bytes of the blocks, base64, or null without bytes
 * @param firstBlock number of the rank's first block among the bytes
 * @param stale why there is nothing under the key, or null; a real engine does not notice
 * @param refused why the engines do not fit, or null
 */
record PullOffer(
        int tokens,
        long print,
        List<Integer> blocks,
        String record,
        int firstBlock,
        String stale,
        String refused) {
    static PullOffer stale(String why) {
        return new PullOffer(0, 0, List.of(), null, 0, why, null);
    }

    static PullOffer refused(String why) {
        return new PullOffer(0, 0, List.of(), null, 0, null, why);
    }
}
