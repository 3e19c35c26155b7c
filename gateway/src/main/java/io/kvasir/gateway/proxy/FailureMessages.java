package io.kvasir.gateway.proxy;

import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamFault;

/** What a failed attempt is called to its client, and to operators, with the cause. */
final class FailureMessages {
    private final Upstream upstream;
    private final RetryPolicy retries;
    private final boolean trusted;

    /**
     * @param retries of the request: which attempt it is when a message is made
     * @param trusted whether the client may know the worker
     */
    FailureMessages(Upstream upstream, RetryPolicy retries, boolean trusted) {
        this.upstream = upstream;
        this.retries = retries;
        this.trusted = trusted;
    }

    /** The error that the client gets where nothing else answers. */
    ApiException forClient(UpstreamFault fault) {
        final String text =
                text(
                        trusted ? "upstream worker " + upstream.name() : "the worker",
                        fault,
                        fault.textForClient());
        return fault.isOwn()
                ? ApiException.unable(fault.status(), fault.spelling(), text)
                : ApiException.upstream(
                        fault.status(), fault.spelling(), trusted ? upstream.name() : null, text);
    }

    /** The line for operators. */
    String forOperators(UpstreamFault fault, String cause) {
        return text(
                "upstream worker " + upstream.name() + " at " + upstream.url(),
                fault,
                LogText.of(cause));
    }

    private String text(String worker, UpstreamFault fault, String cause) {
        return worker
                + ' '
                + fault.outcome()
                + " ("
                + fault.spelling()
                + ", attempt "
                + retries.attempt()
                + " of "
                + retries.limit()
                + "): "
                + cause;
    }
}
