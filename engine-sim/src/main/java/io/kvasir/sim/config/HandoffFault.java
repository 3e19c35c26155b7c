package io.kvasir.sim.config;

/** What a prefill engine can be made to do wrong, see {@code SimFaults.handoffs}. */
public enum HandoffFault {
    /** The prompt is computed; instead of an answer the engine begins a new life. */
    DIES_BEFORE_ANSWER,
    /** The answer is complete; then the engine begins a new life. */
    DIES_AFTER_ANSWER,
    /** The answer has no parameters of the hand-off; the blocks stay held. */
    ANSWERS_WITHOUT_PARAMETERS,
    /** The parameters of the hand-off have other types than they must; the blocks stay held. */
    ANSWERS_WITH_MALFORMED_PARAMETERS,
    /** The lease ends as it begins. */
    LEASE_ENDS_EARLY,
    /** The bytes of the prompt's last token are wrong, where blocks have bytes. */
    SPOILS_BYTES
}
