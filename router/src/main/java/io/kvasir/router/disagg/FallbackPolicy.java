package io.kvasir.router.disagg;

import java.util.Locale;

/** What follows when a split request fails before the client has a byte. */
public enum FallbackPolicy {
    /** A worker that decodes computes the prompt, too; where none can, as the next. */
    DECODE_ONLY,
    /** The prompt is computed by a prefill worker again, another one where there is one. */
    OTHER_PREFILL,
    /** The request fails. */
    FAIL;

    /**
     * As settings write it.
     *
     * @return lower case, with hyphens
     */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
