package io.kvasir.sim;

/** Fingerprint of the keys and values of a prompt: equal tokens under one model give equal ones. */
final class KvPrint {
    private KvPrint() {}

    /**
     * Takes the fingerprint of leading tokens.
     *
     * @param tokens a sequence
     * @param count how many of its tokens count
     * @param lora adapter's name or null: other weights, other keys and values
     */
    static long of(int[] tokens, int count, String lora) {
        long state = Completion.mix(lora == null ? 0 : lora.hashCode());
        for (int i = 0; i < count; i++) {
            state = Completion.mix(state ^ tokens[i]);
        }
        return state;
    }
}
