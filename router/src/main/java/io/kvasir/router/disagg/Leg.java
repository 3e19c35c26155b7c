package io.kvasir.router.disagg;

import java.util.Locale;

/** One of the two requests to workers that a split request becomes. */
public enum Leg {
    /** Computes the prompt; its answer is one token, which is thrown away. */
    PREFILL,
    /** Fetches the prompt's blocks and answers the client. */
    DECODE;

    /**
     * As metrics, logs and error answers write it.
     *
     * @return lower case
     */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }
}
