package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.protocol.handoff.Bootstrap;
import io.kvasir.protocol.handoff.DisaggregatedParams;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.TrtLlmHandoff;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.protocol.handoff.VllmHandoff;

import java.util.Optional;

/**
 * The bodies of both legs of a request, by the engines' protocol: the client's own bytes, with what
 * hands the blocks over.
 */
final class LegBodies {
    private final HandoffProtocol protocol;
    private final VerbatimJson client;

    /**
     * @param client the body as one worker would get it
     */
    LegBodies(HandoffProtocol protocol, VerbatimJson client) {
        this.protocol = protocol;
        this.client = client;
    }

    /** What the prefill worker gets where its answer names the blocks. */
    VerbatimJson prefill() {
        return switch (protocol) {
            case VLLM -> VllmHandoff.prefillBody(client);
            case TRTLLM -> TrtLlmHandoff.prefillBody(client);
            case SGLANG -> throw new AssertionError("its workers meet");
        };
    }

    /**
     * What the decode worker gets.
     *
     * @param answer of the prefill worker
     * @return empty where the answer names no blocks
     */
    Optional<VerbatimJson> decode(VerbatimJson answer) {
        return switch (protocol) {
            case VLLM ->
                    KvTransferParams.in(answer)
                            .map(params -> VllmHandoff.decodeBody(client, params));
            case TRTLLM ->
                    DisaggregatedParams.in(answer)
                            .map(params -> TrtLlmHandoff.decodeBody(client, params));
            case SGLANG -> throw new AssertionError("its workers meet");
        };
    }

    /**
     * Whether there is a {@link #decode} of an answer.
     *
     * @param answer of the prefill worker
     */
    boolean namesBlocks(VerbatimJson answer) {
        return switch (protocol) {
            case VLLM -> KvTransferParams.in(answer).isPresent();
            case TRTLLM -> DisaggregatedParams.in(answer).isPresent();
            case SGLANG -> throw new AssertionError("its workers meet");
        };
    }

    /**
     * What the client gets where the prefill worker has generated all of it.
     *
     * @param answer of the prefill worker
     * @return empty where a decode worker goes on
     */
    Optional<VerbatimJson> complete(VerbatimJson answer) {
        return protocol == HandoffProtocol.TRTLLM
                ? TrtLlmHandoff.completeAnswer(answer)
                : Optional.empty();
    }

    /** What both workers get that meet. */
    VerbatimJson meeting(Rendezvous rendezvous) {
        return rendezvous.prompts() == 1
                ? rendezvous.meetings().getFirst().spliceInto(client)
                : Bootstrap.spliceInto(client, rendezvous.meetings());
    }
}
