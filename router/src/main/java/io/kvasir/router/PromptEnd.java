package io.kvasir.router;

/** How it is known that the prompt of a booking is computed. */
public enum PromptEnd {
    /** It is not, as far as is known. */
    NOT_YET,

    /** The caller has said so: {@link Lease#prefillComplete}. */
    REPORTED,

    /** The worker's events have announced the last full block of the prompt. */
    STORED,

    /** It was computed for as long as prompts of other requests took there. */
    EXPECTED
}
