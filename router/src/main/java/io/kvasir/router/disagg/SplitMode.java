package io.kvasir.router.disagg;

import java.util.Locale;

/** When a request is split, given that there are workers for it. */
public enum SplitMode {
    /** Always. */
    ALWAYS,
    /** Where the decode worker would have to compute many tokens: {@link SplitPolicy.Limits}. */
    LIMITS,
    /** Where it is expected to be faster; by the limits as long as too little is known. */
    COST,
    /** Never: prefill workers are not used. */
    NEVER;

    /**
     * As settings write it.
     *
     * @return lower case
     */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }
}
