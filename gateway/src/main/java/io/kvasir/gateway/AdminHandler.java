package io.kvasir.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.routing.DecisionLog;
import io.kvasir.gateway.routing.DecisionRecord;
import io.kvasir.gateway.server.Credentials;
import io.kvasir.gateway.server.Paths;
import io.kvasir.gateway.server.Queries;
import io.kvasir.gateway.server.RequestRecords;
import io.kvasir.gateway.server.Responses;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.URIUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * What operators ask for: metrics, debug pages, the administration of workers, and settings. For
 * callers that present the admin token where one is set; where none is, for programs on this
 * machine. Browsers are refused then: a page of any site could use them to reach this port.
 */
final class AdminHandler extends Handler.Abstract {
    private static final Logger LOG = LoggerFactory.getLogger(AdminHandler.class);
    private static final List<String> READ = List.of("GET", "HEAD");
    private static final Map<String, List<String>> PATHS =
            Map.of(
                    "/health", READ,
                    "/metrics", READ,
                    "/debug/decisions", READ,
                    "/debug/workers", READ);
    private static final List<String> OTHERS =
            List.of(StatusHandler.LIVE, StatusHandler.READY, WorkersApi.PATH, SettingsApi.PATH);

    private final BearerTokens tokens;
    private final GatewayMetrics metrics;
    private final DecisionLog decisions;
    private final Readiness readiness;
    private final StatusEndpoints endpoints;
    private final WorkersApi workers;
    private final SettingsApi settings;

    AdminHandler(
            BearerTokens tokens,
            GatewayMetrics metrics,
            DecisionLog decisions,
            Readiness readiness,
            StatusEndpoints endpoints,
            WorkersApi workers,
            SettingsApi settings) {
        this.tokens = tokens;
        this.metrics = metrics;
        this.decisions = decisions;
        this.readiness = readiness;
        this.endpoints = endpoints;
        this.workers = workers;
        this.settings = settings;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        final String path = Request.getPathInContext(request);
        try {
            Credentials.check(request);
            checkCaller(request, response);
            Queries.check(request);
            if (WorkersApi.has(path)) {
                workers.answer(URIUtil.decodePath(path), request, response, callback);
                return true;
            }
            if (path.equals(SettingsApi.PATH)) {
                settings.answer(request, response, callback);
                return true;
            }
            if (Paths.options(PATHS, path, request, response, callback)) {
                return true;
            }
            Paths.check(PATHS, OTHERS, path, request.getMethod());
            answer(path, request, response, callback);
        } catch (ApiException e) {
            Responses.error(response, callback, e, RequestRecords.of(request).id());
        } catch (IOException | RuntimeException e) {
            LOG.atError()
                    .addKeyValue(RequestRecord.LOG_KEY, RequestRecords.of(request).id())
                    .setCause(LogText.of(e))
                    .log(
                            "{}: admin port: {} {} failed",
                            RequestRecords.of(request).id(),
                            LogText.of(request.getMethod()),
                            LogText.of(path));
            Responses.error(
                    response,
                    callback,
                    ApiException.internal("internal error; see the log"),
                    RequestRecords.of(request).id());
        }
        return true;
    }

    private void answer(String path, Request request, Response response, Callback callback)
            throws ApiException, IOException {
        switch (path) {
            case "/health" -> {
                final Readiness.State state = readiness.health();
                Responses.json(
                        response,
                        callback,
                        state.good() ? 200 : 503,
                        endpoints.health(readiness, state));
            }
            case "/metrics" -> {
                final GatewayMetrics.Page page =
                        metrics.page(request.getHeaders().get(HttpHeader.ACCEPT));
                Responses.write(
                        response,
                        callback,
                        200,
                        page.contentType(),
                        page.text().getBytes(StandardCharsets.UTF_8));
            }
            case "/debug/workers" -> Responses.json(response, callback, 200, endpoints.workers());
            case "/debug/decisions" -> Responses.json(response, callback, 200, decisions(request));
            default -> throw new AssertionError("path " + path + " is listed but not served");
        }
    }

    private void checkCaller(Request request, Response response) throws ApiException {
        if (!tokens.isEmpty()) {
            if (!tokens.accept(request.getHeaders().get(HttpHeader.AUTHORIZATION))) {
                response.getHeaders().put(HttpHeader.WWW_AUTHENTICATE, "Bearer");
                throw ApiException.client(
                        401,
                        null,
                        "unauthorized",
                        "unauthorized",
                        "the admin port needs Authorization: Bearer with the admin token");
            }
        } else if (request.getHeaders().contains(HttpHeader.ORIGIN)
                || !isThisMachine(Request.getServerName(request))) {
            throw ApiException.client(
                    403,
                    null,
                    "forbidden",
                    "forbidden",
                    "without an admin token, requests of web pages and to host names other than"
                            + " localhost are refused; set admin-token or admin-token-file");
        }
    }

    /** A name that a web site can have its own address say is none: that is DNS rebinding. */
    private static boolean isThisMachine(String host) {
        return host == null || host.equals("localhost") || isAddress(host);
    }

    private static boolean isAddress(String host) {
        return host.indexOf(':') >= 0 || host.matches("[0-9.]+");
    }

    /** The newest, or all of one request. */
    private ObjectNode decisions(Request request) throws ApiException {
        final Fields query = Request.extractQueryParameters(request);
        final String id = query.getValue("id");
        final int limit = limit(query.get("limit"));
        if (id == null) {
            return endpoints.decisions(decisions.newest(limit), decisions.size());
        }
        final List<DecisionRecord> found = decisions.of(id, limit);
        if (found.isEmpty()) {
            throw ApiException.decisionNotHeld(id, decisions.size());
        }
        return endpoints.decisions(found, decisions.size());
    }

    private int limit(Fields.Field limit) throws ApiException {
        if (limit == null) {
            return decisions.size();
        }
        try {
            final int value = Integer.parseInt(limit.getValue());
            if (value > 0) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw ApiException.invalid("limit", "limit=" + limit.getValue() + " is not a number");
        }
        throw ApiException.invalid("limit", "limit=" + limit.getValue() + " must be at least 1");
    }
}
