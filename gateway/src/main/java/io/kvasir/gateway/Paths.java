package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Response;

import java.util.List;
import java.util.Map;

/** The endpoints of a port. */
final class Paths {
    private Paths() {}

    /**
     * Checks that an endpoint exists and answers a method.
     *
     * @param paths methods by path
     * @throws ApiException 404 or 405
     */
    static void check(
            Map<String, List<String>> paths, String path, String method, Response response)
            throws ApiException {
        final List<String> methods = paths.get(path);
        if (methods == null) {
            throw ApiException.client(
                    404,
                    null,
                    "not_found",
                    "unknown_path",
                    "no endpoint "
                            + path
                            + "; there are: "
                            + String.join(", ", paths.keySet().stream().sorted().toList()));
        }
        if (!methods.contains(method)) {
            response.getHeaders().put(HttpHeader.ALLOW, String.join(", ", methods));
            throw ApiException.client(
                    405,
                    null,
                    "method_not_allowed",
                    "wrong_method",
                    path + " answers " + String.join(", ", methods) + ", not " + method);
        }
    }
}
