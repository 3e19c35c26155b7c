package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The endpoints of a port. */
public final class Paths {
    /** Methods of a port as a whole. */
    private static final List<String> ALL = List.of("GET", "HEAD", "POST");

    private Paths() {}

    /**
     * Answers {@code OPTIONS}.
     *
     * @param paths methods by path
     * @return false if something else is asked for, or of a path that there is not
     */
    public static boolean options(
            Map<String, List<String>> paths,
            String path,
            Request request,
            Response response,
            Callback callback) {
        final List<String> methods = path.equals("*") ? ALL : paths.get(path);
        if (methods == null || !request.getMethod().equals("OPTIONS")) {
            return false;
        }
        Responses.options(response, callback, String.join(", ", methods));
        return true;
    }

    /**
     * Checks that an endpoint exists and answers a method.
     *
     * @param paths methods by path
     * @param others paths that other handlers of the port answer before, for the list of all
     * @throws ApiException 404 or 405
     */
    public static void check(
            Map<String, List<String>> paths, List<String> others, String path, String method)
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
                            + Stream.concat(paths.keySet().stream(), others.stream())
                                    .sorted()
                                    .collect(Collectors.joining(", ")));
        }
        if (!methods.contains(method)) {
            throw wrongMethod(path, String.join(", ", methods), method);
        }
    }

    /** A 405 that says what is allowed. */
    public static ApiException wrongMethod(String path, String methods, String method) {
        return ApiException.client(
                        405,
                        null,
                        "method_not_allowed",
                        "wrong_method",
                        path + " answers " + methods + ", not " + method)
                .with(HttpHeader.ALLOW, methods + ", OPTIONS");
    }
}
