package io.kvasir.sim.config;

/** How prefill and decode engines agree on a hand-off. */
public enum SimHandoff {
    /** The prefill's answer has {@code kv_transfer_params}, which the decode's request repeats. */
    VLLM,
    /** Both requests name a room at the prefill's bootstrap port and run at the same time. */
    SGLANG,
    /** The prefill's answer has {@code disaggregated_params} with an opaque state. */
    TRTLLM
}
