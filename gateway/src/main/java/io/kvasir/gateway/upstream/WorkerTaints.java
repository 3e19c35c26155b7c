package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.Disaggregation;
import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerInput;

/**
 * Taints of the gateway's workers ({@link io.kvasir.router.WorkerSpec#taints}): what keeps a part
 * of a request from them. One bit each: the protocols, then the three constants.
 */
public final class WorkerTaints {
    private static final long ALL_PROTOCOLS = 0b111;

    /** It prefills and decodes: the second half of a split request is not for it. */
    public static final long DOES_BOTH = ALL_PROTOCOLS + 1;

    /** It decodes alone, and computes no prompt: a request that is not split is not for it. */
    public static final long NEEDS_PREFILL = DOES_BOTH << 1;

    /** It is sent token ids: a request that only a text can say is not for it. */
    public static final long TAKES_TOKENS = NEEDS_PREFILL << 1;

    private WorkerTaints() {}

    static long of(WorkerConfig worker) {
        return of(worker.disaggregation())
                | (worker.input() == WorkerInput.TOKENS ? TAKES_TOKENS : 0);
    }

    private static long of(Disaggregation worker) {
        final long protocol = of(worker.handoff());
        return switch (worker.role()) {
            case BOTH -> protocol | DOES_BOTH;
            case PREFILL -> protocol;
            case DECODE ->
                    worker.handoff().decodeWorkerCanPrefill() ? protocol : protocol | NEEDS_PREFILL;
        };
    }

    static long of(HandoffProtocol protocol) {
        return switch (protocol) {
            case VLLM -> 0b001;
            case SGLANG -> 0b010;
            case TRTLLM -> 0b100;
        };
    }

    /** Of all workers of other protocols. */
    public static long ofOthersThan(HandoffProtocol protocol) {
        return allProtocolsBut(of(protocol));
    }

    /**
     * @param protocols taints of some protocols
     */
    static long allProtocolsBut(long protocols) {
        return ALL_PROTOCOLS & ~protocols;
    }
}
