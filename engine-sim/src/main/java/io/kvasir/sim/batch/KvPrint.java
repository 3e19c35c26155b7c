package io.kvasir.sim.batch;

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
        long state = first(lora);
        for (int i = 0; i < count; i++) {
            state = next(state, tokens[i]);
        }
        return state;
    }

    /** The fingerprints of a sequence up to and with each of its tokens. */
    static long[] each(int[] tokens, String lora) {
        final long[] states = new long[tokens.length];
        long state = first(lora);
        for (int i = 0; i < states.length; i++) {
            state = next(state, tokens[i]);
            states[i] = state;
        }
        return states;
    }

    private static long first(String lora) {
        return Completion.mix(lora == null ? 0 : lora.hashCode());
    }

    private static long next(long state, int token) {
        return Completion.mix(state ^ token);
    }
}
