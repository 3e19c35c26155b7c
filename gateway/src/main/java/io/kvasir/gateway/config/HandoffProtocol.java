package io.kvasir.gateway.config;

import java.util.Locale;

/** How an engine hands the blocks of a prompt over from the worker that computed it. */
public enum HandoffProtocol {
    /** The prefill answers with {@code kv_transfer_params}, which the decode request brings. */
    VLLM,
    /** Both requests name a room at the prefill worker's bootstrap server, and run at once. */
    SGLANG,
    /** The prefill answers with {@code disaggregated_params}, which the decode request brings. */
    TRTLLM;

    /** As flags, sources and logs write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Whether an engine in the role decode computes a prompt that nothing was handed over of. */
    public boolean decodeWorkerCanPrefill() {
        return this == VLLM;
    }

    /**
     * Parses the spelling.
     *
     * @throws IllegalArgumentException if there is no such protocol; the message lists them
     */
    static HandoffProtocol parse(String text) {
        for (HandoffProtocol protocol : values()) {
            if (protocol.spelling().equals(text)) {
                return protocol;
            }
        }
        throw new IllegalArgumentException("handoff=" + text + "; one of: vllm, sglang, trtllm");
    }
}
