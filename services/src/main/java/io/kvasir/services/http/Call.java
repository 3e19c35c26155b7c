package io.kvasir.services.http;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Fields;

/** A request to an endpoint: its query and its body. One thread. */
public final class Call {
    private final Request request;
    private final byte[] bytes;
    private final String parameter;

    Call(Request request, byte[] bytes, String parameter) {
        this.request = request;
        this.bytes = bytes;
        this.parameter = parameter;
    }

    /** What the path has in the place of <code>{}</code>; empty where there is none. */
    public String parameter() {
        return parameter;
    }

    /** Whether there is a body. */
    public boolean hasBody() {
        return bytes.length > 0;
    }

    /** A value of the query; null where there is none. */
    public String query(String name) {
        final Fields fields = Request.extractQueryParameters(request);
        return fields.getValue(name);
    }

    /** A value of the head; null where there is none. */
    public String header(String name) {
        return request.getHeaders().get(name);
    }

    /**
     * The body.
     *
     * @throws ServiceException 400 or 422 if it is no JSON object
     */
    public JsonBody body() throws ServiceException {
        return JsonBody.parse(bytes);
    }
}
