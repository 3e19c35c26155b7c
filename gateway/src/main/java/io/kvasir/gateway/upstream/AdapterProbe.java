package io.kvasir.gateway.upstream;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.Json;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Learns which adapters a server has from its own list of models: each with a {@code parent} is
 * one. What it does not say is kept as it was: a list that cannot be read changes nothing. While
 * {@link RouterSettings#LORA_MODE} is off it is not asked, and what it had listed is forgotten. One
 * thread.
 */
final class AdapterProbe {
    static final String PATH = "/v1/models";

    private static final Logger LOG = LoggerFactory.getLogger(AdapterProbe.class);

    private final Upstream upstream;
    private final GatewayConfig config;
    private final long intervalNs;
    private boolean asked;
    private long lastNs;
    private boolean complained;

    AdapterProbe(Upstream upstream, GatewayConfig config) {
        this.upstream = upstream;
        this.config = config;
        intervalNs = config.get(GatewaySettings.LORA_INTERVAL).toNanos();
    }

    /**
     * Whether the server is to be asked now.
     *
     * @param anew whether it may be another engine than before
     */
    boolean isDue(boolean anew) {
        if (config.get(RouterSettings.LORA_MODE) == LoraMode.OFF) {
            if (asked || upstream.listsAdapters()) { // under a former description
                upstream.forgetAdapters(); // a list that is not renewed would be served for ever
                asked = false;
            }
            return false;
        }
        final long now = System.nanoTime();
        if (asked && !anew && now - lastNs < intervalNs) {
            return false;
        }
        asked = true;
        lastNs = now;
        return true;
    }

    /** Takes the server's list. */
    void answered(int status, byte[] body) {
        if (status != 200) {
            failed("GET " + PATH + " answered " + status);
            return;
        }
        try {
            final JsonNode models = Json.MAPPER.readTree(body).path("data");
            if (!models.isArray()) {
                failed("GET " + PATH + " answered without a list of models");
                return;
            }
            take(models);
            complained = false;
        } catch (IOException | IllegalArgumentException e) {
            failed(FailureText.of(e));
        }
    }

    private void take(JsonNode models) {
        final Set<String> names = new HashSet<>();
        final Map<Long, String> numbers = new HashMap<>();
        for (JsonNode model : models) {
            final String name = model.path("id").asText("");
            if (model.path("parent").isTextual() && !name.isEmpty()) {
                names.add(name);
                final JsonNode number =
                        model.has("lora_int_id") ? model.get("lora_int_id") : model.path("lora_id");
                if (number.canConvertToLong() && number.longValue() != 0) {
                    numbers.put(number.longValue(), name);
                }
            }
        }
        upstream.adapters(names, numbers);
    }

    /** The list cannot be had. */
    void failed(String why) {
        if (!complained) {
            complained = true;
            LOG.warn(
                    "worker {}: its adapters cannot be learned, those known before stay: {}",
                    upstream.name(),
                    LogText.of(why));
        }
    }
}
