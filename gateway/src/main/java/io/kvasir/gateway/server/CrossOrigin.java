package io.kvasir.gateway.server;

import io.kvasir.gateway.config.CorsOrigin;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.RequestRecord;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.handler.CrossOriginHandler;
import org.eclipse.jetty.util.Callback;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/** Lets pages of the configured origins call the gateway; preflights are answered here. */
public final class CrossOrigin extends CrossOriginHandler {
    /** What clients of the API send from within a browser. */
    private static final List<String> HEADERS =
            List.of(
                    "Authorization",
                    "Content-Type",
                    "Accept",
                    "X-Request-Id",
                    "OpenAI-Beta",
                    "OpenAI-Organization",
                    "OpenAI-Project",
                    "X-Stainless-Arch",
                    "X-Stainless-Async",
                    "X-Stainless-Helper-Method",
                    "X-Stainless-Lang",
                    "X-Stainless-OS",
                    "X-Stainless-Package-Version",
                    "X-Stainless-Retry-Count",
                    "X-Stainless-Runtime",
                    "X-Stainless-Runtime-Version",
                    "X-Stainless-Timeout");

    private CrossOrigin(GatewayConfig config) {
        final Set<String> origins = new LinkedHashSet<>();
        for (String origin : config.get(GatewaySettings.CORS_ORIGINS)) {
            origins.add(origin.equals(CorsOrigin.ANY) ? CorsOrigin.ANY : Pattern.quote(origin));
        }
        final Set<String> headers = new LinkedHashSet<>(HEADERS);
        headers.addAll(config.get(GatewaySettings.CORS_HEADERS));
        setAllowedOriginPatterns(origins);
        setAllowedMethods(Set.of("GET", "HEAD", "POST"));
        setAllowedHeaders(headers);
        setExposedHeaders(Set.of(RequestRecord.HEADER, HttpHeader.RETRY_AFTER.asString()));
        setPreflightMaxAge(config.get(GatewaySettings.CORS_MAX_AGE));
        setAllowCredentials(config.get(GatewaySettings.CORS_CREDENTIALS));
    }

    /** Puts it around a handler where origins are configured. */
    public static Handler around(Handler below, GatewayConfig config) {
        if (config.get(GatewaySettings.CORS_ORIGINS).isEmpty()) {
            return below;
        }
        final CrossOrigin outer = new CrossOrigin(config);
        outer.setHandler(below);
        return outer;
    }

    /** What pages of other origins may do is the gateway's to say. */
    public static boolean isForBrowsers(HttpField field) {
        return field.getLowerCaseName().startsWith("access-control-");
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        final HttpFields headers = request.getHeaders();
        if (request.getMethod().equals("OPTIONS")
                && headers.contains(HttpHeader.ORIGIN)
                && headers.contains(HttpHeader.ACCESS_CONTROL_REQUEST_METHOD)) {
            response.setStatus(HttpStatus.NO_CONTENT_204);
        }
        return super.handle(request, new KeepingResponse(request, response), callback);
    }

    /** Keeps what is said to browsers where an error replaces the headers of an answer. */
    private static final class KeepingResponse extends Response.Wrapper {
        KeepingResponse(Request request, Response response) {
            super(request, response);
        }

        @Override
        public void reset() {
            final List<HttpField> kept =
                    getHeaders().stream().filter(KeepingResponse::isKept).toList();
            super.reset();
            kept.forEach(getHeaders()::put);
        }

        private static boolean isKept(HttpField field) {
            return field.getHeader() == HttpHeader.VARY || CrossOrigin.isForBrowsers(field);
        }
    }
}
