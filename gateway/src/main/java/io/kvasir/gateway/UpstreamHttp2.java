package io.kvasir.gateway;

import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.http.HttpScheme;
import org.eclipse.jetty.http.HttpVersion;

import java.net.URI;

/** With which workers HTTP/2 is spoken. */
public enum UpstreamHttp2 {
    /** With https:// workers that offer it. */
    AUTO,
    /** With none. */
    OFF,
    /**
     * With https:// workers that offer it, and with all http:// workers: nothing is offered there.
     */
    PRIOR_KNOWLEDGE;

    /** Whether a request to such a URL may share its connection with others. */
    boolean mayShareConnection(URI worker) {
        return this != OFF && (this == PRIOR_KNOWLEDGE || HttpScheme.HTTPS.is(worker.getScheme()));
    }

    /** Chooses the version of a request. */
    Request applyTo(Request request) {
        if (HttpScheme.HTTPS.is(request.getScheme())) {
            return this == OFF ? request.version(HttpVersion.HTTP_1_1) : request; // negotiated
        }
        return request.version(this == PRIOR_KNOWLEDGE ? HttpVersion.HTTP_2 : HttpVersion.HTTP_1_1);
    }
}
