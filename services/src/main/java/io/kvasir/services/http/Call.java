package io.kvasir.services.http;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Fields;

/** A request to an endpoint: its query and its body. One thread. */
public final class Call {
    private final Request request;
    private final byte[] bytes;
    private final String parameter;
    private final Fields query;

    /**
     * @throws ServiceException 400 if its query cannot be decoded
     */
    Call(Request request, byte[] bytes, String parameter) throws ServiceException {
        this.request = request;
        query = decodedQuery(request);
        this.bytes = bytes;
        this.parameter = parameter;
    }

    private static Fields decodedQuery(Request request) throws ServiceException {
        try {
            return Request.extractQueryParameters(request);
        } catch (RuntimeException e) { // of several kinds, by what is wrong
            throw new ServiceException(400, "the query cannot be decoded: " + e.getMessage());
        }
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
        return query.getValue(name);
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
