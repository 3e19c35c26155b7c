package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.ProcessingProtocolHandler;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.http.HttpStatus;

/**
 * Skips responses of status 1xx, however many a worker sends before the final one: they are for the
 * connection that they come over. A 101 is none of them: nothing was offered to switch to.
 */
public final class InterimResponses extends ProcessingProtocolHandler {
    @Override
    public String getName() {
        return "interim";
    }

    @Override
    public boolean accept(Request request, Response response) {
        return HttpStatus.isInterim(response.getStatus());
    }
}
