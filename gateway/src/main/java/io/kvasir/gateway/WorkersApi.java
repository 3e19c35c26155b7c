package io.kvasir.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerAdapters;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.server.Paths;
import io.kvasir.gateway.server.Responses;
import io.kvasir.gateway.upstream.AdminDiscovery;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.Upstream;

import org.eclipse.jetty.http.HttpURI;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.URIUtil;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * {@code /admin/workers} of the admin port: which workers there are, and how operators add, drain
 * and remove them while the gateway runs.
 */
final class WorkersApi {
    static final String PATH = "/admin/workers";

    private static final String DRAIN = "/drain";
    private static final String RESUME = "/resume";
    private static final String LORA_IDS = "/lora-ids";
    private static final String COLLECTION = "GET, HEAD, POST";
    private static final String ONE = "GET, HEAD, DELETE";

    private final GatewayConfig config;
    private final Fleet fleet;
    private final AdminDiscovery discovery;
    private final StatusEndpoints endpoints;
    private final AdminBodies bodies;

    WorkersApi(
            GatewayConfig config,
            Fleet fleet,
            AdminDiscovery discovery,
            StatusEndpoints endpoints) {
        this.config = config;
        this.fleet = fleet;
        this.discovery = discovery;
        this.endpoints = endpoints;
        this.bodies = new AdminBodies(config);
    }

    /** Whether a path is of this API. */
    static boolean has(String path) {
        return path.equals(PATH) || path.startsWith(PATH + '/');
    }

    void answer(String path, Request request, Response response, Callback callback)
            throws ApiException {
        final String method = request.getMethod();
        if (method.equals("OPTIONS")) {
            Responses.options(response, callback, methods(path));
            return;
        }
        if (path.equals(PATH)) {
            switch (method) {
                case "GET", "HEAD" ->
                        Responses.json(response, callback, 200, endpoints.registered());
                case "POST" -> add(request, response, callback);
                default -> throw Paths.wrongMethod(path, COLLECTION, method);
            }
            return;
        }
        final String rest = path.substring(PATH.length() + 1);
        if (rest.endsWith(DRAIN) || rest.endsWith(RESUME)) {
            if (!method.equals("POST")) {
                throw Paths.wrongMethod(path, "POST", method);
            }
            final boolean begin = rest.endsWith(DRAIN);
            final String name = rest.substring(0, rest.lastIndexOf('/'));
            check(name, fleet.drain(name, begin));
            Responses.json(response, callback, 200, one(name));
            return;
        }
        if (rest.endsWith(LORA_IDS)) {
            if (!method.equals("POST")) {
                throw Paths.wrongMethod(path, "POST", method);
            }
            final String name = rest.substring(0, rest.lastIndexOf('/'));
            loraIds(known(name), request);
            Responses.json(response, callback, 200, one(name));
            return;
        }
        switch (method) {
            case "GET", "HEAD" -> Responses.json(response, callback, 200, one(rest));
            case "DELETE" -> {
                check(rest, discovery.remove(rest));
                final ObjectNode page = Json.MAPPER.createObjectNode();
                page.put("name", rest).put("removed", true);
                Responses.json(response, callback, 200, page);
            }
            default -> throw Paths.wrongMethod(path, ONE, method);
        }
    }

    private static String methods(String path) {
        return path.equals(PATH)
                ? COLLECTION
                : path.endsWith(DRAIN) || path.endsWith(RESUME) || path.endsWith(LORA_IDS)
                        ? "POST"
                        : ONE;
    }

    private void add(Request request, Response response, Callback callback) throws ApiException {
        final DiscoveredWorker worker;
        final boolean added;
        try {
            worker = DiscoveredWorker.of(config.get(GatewaySettings.MODEL), texts(request));
            checkAddress(worker.name());
            added = discovery.add(worker);
        } catch (IllegalArgumentException e) {
            throw ApiException.invalid(null, e.getMessage());
        }
        Responses.json(response, callback, added ? 201 : 200, one(worker.name()));
    }

    /** Other sources may give such names: they take their workers back themselves. */
    private static void checkAddress(String name) throws ApiException {
        final String path = PATH + '/' + name;
        final HttpURI address = HttpURI.from(URIUtil.encodePath(path));
        if (address.hasViolations()
                || !path.equals(URIUtil.decodePath(address.getCanonicalPath()))) {
            throw ApiException.invalid(
                    "name",
                    "name="
                            + name
                            + " cannot be in a path, by which the worker would be drained and"
                            + " removed; choose one without %, \\ and other than . and ..");
        }
    }

    /** Takes a JSON object of names and numbers: which adapters a worker's events mean by them. */
    private void loraIds(Upstream upstream, Request request) throws ApiException {
        final Map<String, String> given = texts(request);
        try {
            upstream.loraNumbers(WorkerAdapters.numbers(given));
        } catch (IllegalArgumentException e) {
            throw ApiException.invalid(null, e.getMessage());
        }
    }

    /** A JSON object of the keys that a worker has in YAML; numbers and booleans may be bare. */
    private Map<String, String> texts(Request request) throws ApiException {
        if (!(bodies.read(request) instanceof ObjectNode object)) {
            throw ApiException.invalid(null, "a JSON object with the keys of a worker is needed");
        }
        final Map<String, String> texts = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> member : object.properties()) {
            if (!member.getValue().isValueNode() || member.getValue().isNull()) {
                throw ApiException.invalid(
                        member.getKey(), "'" + member.getKey() + "' must be a single value");
            }
            texts.put(member.getKey(), member.getValue().asText());
        }
        return texts;
    }

    private ObjectNode one(String name) throws ApiException {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        endpoints.registered(page, known(name));
        return page;
    }

    private Upstream known(String name) throws ApiException {
        for (Upstream upstream : fleet.upstreams()) {
            if (upstream.name().equals(name)) {
                return upstream;
            }
        }
        throw notFound(name);
    }

    private static void check(String name, boolean found) throws ApiException {
        if (!found) {
            throw notFound(name);
        }
    }

    private static ApiException notFound(String name) {
        return ApiException.client(
                404, null, "not_found", "unknown_worker", "no worker is named '" + name + "'");
    }
}
