package io.kvasir.gateway.proxy;

import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.SseStream;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.upstream.UpstreamFault;

import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;

import java.nio.ByteBuffer;

/**
 * The answer of a prefill worker, read to its end. A worker that meets another one gets the
 * client's own body, so it may answer with events: then the head says 200 whatever follows.
 *
 * @param status of the answer, or the one that its error event stands for
 * @param body the whole answer; of events the error alone
 * @param usage may state nothing
 * @param fault null where the worker is not at fault
 * @param cause what says so
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record PrefillAnswer(
        int status, byte[] body, UsageReader usage, UpstreamFault fault, String cause) {
    private static final byte[] NOTHING = {};

    /** Reads one. */
    static PrefillAnswer of(Response head, byte[] bytes) {
        return areEvents(head) ? ofEvents(bytes) : ofBytes(head.getStatus(), bytes);
    }

    private static boolean areEvents(Response head) {
        final HttpFields headers = head.getHeaders();
        return head.getStatus() == HttpStatus.OK_200
                && SseStream.isType(headers.get(HttpHeader.CONTENT_TYPE))
                && !headers.contains(HttpHeader.CONTENT_ENCODING);
    }

    private static PrefillAnswer ofBytes(int status, byte[] bytes) {
        final UsageReader usage = new UsageReader();
        usage.read(bytes, 0, bytes.length);
        return new PrefillAnswer(status, bytes, usage, fault(status), "status " + status);
    }

    /** One that is neither an answer nor a refusal is a fault, too: nothing can be made of it. */
    private static UpstreamFault fault(int status) {
        return status != HttpStatus.OK_200 && status < HttpStatus.BAD_REQUEST_400
                ? UpstreamFault.STATUS
                : UpstreamFault.ofStatus(status);
    }

    private static PrefillAnswer ofEvents(byte[] bytes) {
        final SseStream events =
                new SseStream(
                        InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
        events.accept(ByteBuffer.wrap(bytes));
        if (events.sawError()) {
            final int status = events.errorStatus();
            return new PrefillAnswer(
                    status,
                    events.error(),
                    events.usage(),
                    UpstreamFault.ofStatus(status),
                    "error event " + status);
        }
        return new PrefillAnswer(
                HttpStatus.OK_200,
                NOTHING,
                events.usage(),
                events.sawDone() ? null : UpstreamFault.PROTOCOL,
                "the event stream ended without [DONE]");
    }
}
