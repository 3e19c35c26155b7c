package io.kvasir.gateway.proxy;

import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.openai.WholeStream;
import io.kvasir.protocol.handoff.VerbatimJson;

import java.net.ProtocolException;

/**
 * A prefill worker's answer that is the client's, in the form that the client asked for.
 *
 * @param type of the body
 * @param usage may state nothing
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record CompleteAnswer(String type, byte[] body, UsageReader usage) {
    /**
     * Makes it.
     *
     * @param answer whole, without what hands blocks over
     * @throws ProtocolException if it cannot be streamed, as was asked for
     */
    static CompleteAnswer of(InferenceRequest request, VerbatimJson answer)
            throws ProtocolException {
        final byte[] whole = answer.bytes();
        final UsageReader usage = new UsageReader();
        usage.read(whole, 0, whole.length);
        return request.stream
                ? new CompleteAnswer(
                        "text/event-stream; charset=utf-8",
                        WholeStream.of(whole, request.includeUsage),
                        usage)
                : new CompleteAnswer("application/json", whole, usage);
    }
}
