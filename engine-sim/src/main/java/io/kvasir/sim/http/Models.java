package io.kvasir.sim.http;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.events.Labels;

import java.util.ArrayList;
import java.util.List;

/** The models that an engine serves: the base model and its adapters. Immutable, any thread. */
final class Models {
    private final SimConfig config;
    private final List<Labels.Adapter> adapters = new ArrayList<>();

    Models(SimConfig config) {
        this.config = config;
        for (String name : config.loraAdapters()) {
            adapters.add(new Labels.Adapter(adapters.size() + 1, name));
        }
    }

    /**
     * Finds the adapter that a request names.
     *
     * @return null for the base model, also when no model is named
     * @throws ApiException 404 when the model is not served
     */
    Labels.Adapter adapter(String model) {
        if (model == null || model.isEmpty() || model.equals(config.model())) {
            return null;
        }
        for (Labels.Adapter adapter : adapters) {
            if (adapter.name().equals(model)) {
                return adapter;
            }
        }
        throw ApiException.unknownModel(model);
    }

    /** Body of {@code GET /v1/models}. */
    String list(long created) {
        final StringBuilder out = new StringBuilder("{\"object\":\"list\",\"data\":[");
        entry(out, config.model(), null, created);
        for (Labels.Adapter adapter : adapters) {
            out.append(',');
            entry(out, adapter.name(), config.model(), created);
        }
        return out.append("]}").toString();
    }

    private void entry(StringBuilder out, String name, String parent, long created) {
        out.append("{\"id\":");
        Json.string(out, name);
        out.append(",\"object\":\"model\",\"created\":").append(created);
        out.append(",\"owned_by\":\"vllm\",\"root\":");
        Json.string(out, name);
        out.append(",\"parent\":");
        Json.string(out, parent);
        out.append(",\"max_model_len\":");
        out.append(parent == null ? Integer.toString(config.maxModelLength()) : "null");
        out.append(",\"permission\":[]}");
    }
}
