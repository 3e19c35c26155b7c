package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.router.KvRouter;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The models of a gateway, found by the names that requests have. Any thread. */
final class ServedModels {
    private final List<ServedModel> all;
    private final ServedModel first;
    private final Map<String, ServedModel> byName = new HashMap<>(); // and by names of adapters

    /**
     * @param all one at least; names of models and adapters are one model's each
     */
    ServedModels(List<ServedModel> all) {
        this.all = List.copyOf(all);
        first = all.getFirst();
        for (ServedModel model : all) {
            model.config().get(GatewaySettings.LORA).forEach(adapter -> byName.put(adapter, model));
            byName.put(model.name(), model);
        }
    }

    /** In the order of the configuration. */
    List<ServedModel> all() {
        return all;
    }

    /** The one that a request means which names none. */
    ServedModel first() {
        return first;
    }

    /** Whether there is more than one. */
    boolean several() {
        return all.size() > 1;
    }

    /**
     * The model of a request.
     *
     * @param nameOrNull of a model or an adapter, or both as {@link PromptReader#adapter} takes
     *     them
     * @return the first one where there is none of that name, too: its {@link ServedModel#prompts}
     *     refuses the name
     */
    ServedModel of(String nameOrNull) {
        if (!several() || nameOrNull == null) {
            return first;
        }
        final ServedModel named = byName.get(nameOrNull);
        return named == null ? withAdapter(nameOrNull) : named;
    }

    /**
     * The model whose workers have listed an adapter, or that is named before it; else the first.
     */
    private ServedModel withAdapter(String name) {
        ServedModel before = null;
        for (ServedModel model : all) {
            if (model.registry().hasAdapter(name)) {
                return model;
            }
            if (name.startsWith(model.name() + PromptReader.ADAPTER_MARK)
                    && (before == null || before.name().length() < model.name().length())) {
                before = model;
            }
        }
        return before == null ? first : before;
    }

    /** Bookings of all models that are not released yet. */
    int activeLeases() {
        int leases = 0;
        for (ServedModel model : all) {
            leases += model.routers().activeLeases();
        }
        return leases;
    }

    /** The router of the workers that answer clients of a model; null if that is not served. */
    KvRouter routerOrNull(String model) {
        final ServedModel served = byName.get(model);
        return served == null || !served.name().equals(model) ? null : served.routers().main();
    }
}
