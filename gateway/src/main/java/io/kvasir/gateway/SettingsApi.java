package io.kvasir.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.ConfigDump;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.SettingLayers;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.server.Paths;
import io.kvasir.gateway.server.Responses;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.KvRouter;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * {@code /settings} of the admin port: what is set, where it is from, and how operators change what
 * may change while the gateway runs.
 */
final class SettingsApi {
    static final String PATH = "/settings";

    private static final String METHODS = "GET, HEAD, PATCH";
    private static final String SETTINGS = "settings";
    private static final String MODEL = "model";
    private static final String VERSION = "version";
    private static final String DRY_RUN = "dry_run";
    private static final Set<String> MEMBERS = Set.of(SETTINGS, MODEL, VERSION, DRY_RUN);

    private final LiveSettings live;
    private final ServedModels models;
    private final AdminBodies bodies;

    SettingsApi(LiveSettings live, ServedModels models) {
        this.live = live;
        this.models = models;
        bodies = new AdminBodies(live.running());
    }

    void answer(Request request, Response response, Callback callback) throws ApiException {
        switch (request.getMethod()) {
            case "OPTIONS" -> Responses.options(response, callback, METHODS);
            case "GET", "HEAD" -> Responses.json(response, callback, 200, live.atOnce(this::page));
            case "PATCH" -> Responses.json(response, callback, 200, change(bodies.read(request)));
            default -> throw Paths.wrongMethod(PATH, METHODS, request.getMethod());
        }
    }

    private ObjectNode change(JsonNode body) throws ApiException {
        if (!(body instanceof ObjectNode object)) {
            throw ApiException.invalid(
                    null, "a JSON object with the member 'settings' is needed, itself an object");
        }
        for (Map.Entry<String, JsonNode> member : object.properties()) {
            if (!MEMBERS.contains(member.getKey())) {
                throw ApiException.invalid(
                        member.getKey(),
                        "unknown member '"
                                + member.getKey()
                                + "'; there are settings, model, version and dry_run");
            }
        }
        final JsonNode dry = object.path(DRY_RUN);
        if (!dry.isMissingNode() && !dry.isBoolean()) {
            throw ApiException.invalid(DRY_RUN, "'dry_run' must be true or false");
        }
        final JsonNode expected = object.path(VERSION);
        if (!expected.isMissingNode()
                && !(expected.canConvertToLong() && expected.canConvertToExactIntegral())) {
            throw ApiException.invalid(VERSION, "'version' must be a whole number");
        }
        final JsonNode model = object.path(MODEL);
        if (!model.isMissingNode() && !model.isTextual()) {
            throw ApiException.invalid(MODEL, "'model' must be a string");
        }
        try {
            return page(
                    live.change(
                            model.isMissingNode() ? null : model.asText(),
                            texts(object.path(SETTINGS)),
                            expected.isMissingNode() ? null : (Long) expected.longValue(),
                            dry.asBoolean()),
                    dry.asBoolean());
        } catch (IllegalArgumentException e) {
            throw ApiException.invalid(SETTINGS, e.getMessage());
        } catch (LiveSettings.OtherVersionException e) {
            throw ApiException.client(
                    409, VERSION, "conflict", "other_settings_version", e.getMessage());
        }
    }

    /** What each setting is to be; null for what it was without an operator. */
    private static Map<String, List<String>> texts(JsonNode settings) throws ApiException {
        if (!(settings instanceof ObjectNode object) || object.isEmpty()) {
            throw ApiException.invalid(
                    SETTINGS, "'settings' must be an object with one setting at least");
        }
        final Map<String, List<String>> texts = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> member : object.properties()) {
            texts.put(member.getKey(), texts(member.getKey(), member.getValue()));
        }
        return texts;
    }

    private static List<String> texts(String name, JsonNode value) throws ApiException {
        if (value.isNull()) {
            return null;
        }
        final List<String> texts = new ArrayList<>();
        for (JsonNode each : value.isArray() ? value : List.of(value)) {
            if (!each.isValueNode() || each.isNull()) {
                throw ApiException.invalid(
                        name, "'" + name + "' must be a single value, a list of them, or null");
            }
            texts.add(each.asText());
        }
        return texts;
    }

    private ObjectNode page(LiveSettings.Outcome outcome, boolean isDry) {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put(VERSION, outcome.version()).put(DRY_RUN, isDry);
        final ArrayNode changed = page.putArray("changed");
        for (LiveSettings.Difference each : outcome.differences()) {
            final ObjectNode item = changed.addObject();
            if (models.several()) {
                item.put(MODEL, each.model());
            }
            item.put("name", each.setting().name());
            value(item, "from", each.setting(), each.from());
            value(item, "to", each.setting(), each.to());
        }
        final ArrayNode warnings = page.putArray("warnings");
        outcome.warnings().forEach(warnings::add);
        return page;
    }

    private ObjectNode page() {
        final ObjectNode page = Json.MAPPER.createObjectNode();
        page.put(VERSION, live.version());
        final ArrayNode rows = page.putArray(SETTINGS);
        final Settings all = live.running().settings();
        for (Setting<?> row : GatewaySettings.TABLE.rows()) {
            row(rows.addObject(), all, row);
        }
        final ArrayNode each = page.putArray("models");
        for (ServedModel model : models.all()) {
            final ObjectNode item = each.addObject();
            item.put(MODEL, model.name());
            digest(item, "digest", model.routers().main());
            digest(item, "prefill_digest", model.routers().of(WorkerPool.PREFILL));
            own(item.putArray(SETTINGS), model.config(), all);
        }
        final ArrayNode waiting = page.putArray("waiting_for_start");
        for (SettingLayers.Waiting late : live.waiting()) {
            final ObjectNode item = waiting.addObject();
            if (!late.model().isEmpty()) {
                item.put(MODEL, late.model());
            }
            item.put("name", late.setting().name());
            value(item, "value", late.setting(), late.wanted());
        }
        return page;
    }

    /**
     * What of a model's values is not the gateway's, or is the same and said for the model; but for
     * what says which models there are.
     */
    private static void own(ArrayNode rows, GatewayConfig model, Settings gateway) {
        final Settings own = model.settings();
        final List<Setting<?>> others = gateway.differences(own);
        for (Setting<?> row : GatewaySettings.TABLE.rows()) {
            if (row != GatewaySettings.MODEL
                    && row != GatewaySettings.MODELS
                    && (others.contains(row) || isSaid(own, gateway, row))) {
                row(rows.addObject(), own, row);
            }
        }
    }

    private static boolean isSaid(Settings own, Settings gateway, Setting<?> row) {
        return own.source(row) != Settings.Source.DEFAULT
                && !own.origin(row).equals(gateway.origin(row));
    }

    private static void digest(ObjectNode item, String name, KvRouter routerOrNull) {
        item.put(
                name,
                routerOrNull == null ? null : Long.toHexString(routerOrNull.settingsDigest()));
    }

    private static void row(ObjectNode item, Settings all, Setting<?> row) {
        item.put("name", row.name());
        value(item, "value", row, ConfigDump.shown(all, row));
        item.put("source", all.source(row).name().toLowerCase(Locale.ROOT));
        item.put("origin", all.origin(row));
        item.put("live", row.isLive());
    }

    private static void value(ObjectNode item, String name, Setting<?> row, List<String> texts) {
        if (row.isList()) {
            final ArrayNode list = item.putArray(name);
            texts.forEach(list::add);
        } else if (texts.isEmpty()) {
            item.putNull(name);
        } else {
            item.put(name, texts.getFirst());
        }
    }
}
