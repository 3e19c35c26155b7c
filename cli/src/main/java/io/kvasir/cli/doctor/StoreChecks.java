package io.kvasir.cli.doctor;

import io.kvasir.cli.doctor.Doctor.Findings;
import io.kvasir.gateway.WorkerStores;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The stores in which a gateway of a configuration would find workers: whether they answer, what
 * they hold, and what of it cannot be used.
 */
public final class StoreChecks {
    private static final String REGISTRATION = "registration";
    private static final String WORKERS = "workers";
    private static final int MOST_REFUSALS = 16;
    private static final int MOST_NAMES = 8;

    private StoreChecks() {}

    /**
     * Judges what a store has said.
     *
     * @param config that names it
     * @param limit how long it was waited for
     */
    public static Findings of(WorkerStores.View store, GatewayConfig config, Duration limit) {
        final List<Check> checks = new ArrayList<>();
        final String inTime = "an answer within " + limit.toSeconds() + " s";
        for (String failure : store.failures()) {
            checks.add(
                    Check.fail(
                            ServerChecks.REACHABLE,
                            failure,
                            inTime,
                            "check its address, that it runs, and what the gateway may read there:"
                                    + " docs/operations/discovery.md"));
        }
        if (store.failures().isEmpty()) {
            checks.add(Check.pass(ServerChecks.REACHABLE, "it has answered", inTime));
        }
        store.refusals().stream().limit(MOST_REFUSALS).forEach(each -> checks.add(unusable(each)));
        if (store.refusals().size() > MOST_REFUSALS) {
            checks.add(unusable("and " + (store.refusals().size() - MOST_REFUSALS) + " more"));
        }
        final String expected = expected(store.source(), config);
        if (!store.workers().isEmpty()) {
            checks.add(Check.pass(WORKERS, names(store.workers()), expected));
        } else if (store.failures().isEmpty()) {
            checks.add(
                    Check.fail(
                            WORKERS,
                            "none",
                            expected,
                            "register them (kvasir register, or their library), or look for them"
                                    + " under another namespace, prefix or label"));
        }
        return new Findings(store.source(), store.place(), checks);
    }

    private static String expected(String source, GatewayConfig config) {
        final String models =
                config.models().stream()
                        .map(model -> model.get(GatewaySettings.MODEL))
                        .collect(Collectors.joining(", ", "workers of ", " that are ready"));
        return switch (source) {
            case "file" -> "a list of workers";
            case "kubernetes" -> models;
            default -> models + ", in namespace " + config.get(GatewaySettings.DISCOVERY_NAMESPACE);
        };
    }

    private static Check unusable(String what) {
        return Check.fail(
                REGISTRATION,
                what,
                "a registration that this gateway can use",
                "have its worker register again by the format of docs/spec/registration.md, or"
                        + " delete it");
    }

    private static String names(List<DiscoveredWorker> workers) {
        return workers.size()
                + ": "
                + workers.stream()
                        .limit(MOST_NAMES)
                        .map(DiscoveredWorker::name)
                        .collect(Collectors.joining(", "))
                + (workers.size() > MOST_NAMES ? ", …" : "");
    }
}
