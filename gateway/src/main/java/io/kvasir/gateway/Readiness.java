package io.kvasir.gateway;

import io.kvasir.gateway.upstream.Capabilities;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamHealth;
import io.kvasir.gateway.upstream.UpstreamRegistry;

import java.util.List;
import java.util.function.Function;

/**
 * Whether the gateway can serve. Not before workers answer that can serve a request for one of its
 * models, one of them all of it or two of them its legs, and, in the first moments, the indexes of
 * the workers are loaded; not from the moment on at which it was asked to end. Waits for nothing.
 */
final class Readiness {
    /** An answer of a status page. */
    enum State {
        LIVE("live", true),
        OK("ok", true),
        READY("ready", true),
        NO_WORKER("no worker can be used", false),
        NO_DECODE_WORKER("no decode worker can be used", false),
        NO_PREFILL_WORKER("no prefill worker can be used", false),
        LOADING("the indexes of workers are being loaded", false),
        DRAINING("draining", false);

        private final String text;
        private final boolean good;

        State(String text, boolean good) {
            this.text = text;
            this.good = good;
        }

        String text() {
            return text;
        }

        boolean good() {
            return good;
        }
    }

    private final List<UpstreamRegistry> registries;
    private final long loadLimitNs;
    private final long startNs = System.nanoTime();
    private volatile boolean loaded;
    private volatile boolean draining;

    /**
     * @param registries the workers of each model; one model at least
     * @param loadLimitNs how long the load of indexes is waited for at most
     */
    Readiness(List<UpstreamRegistry> registries, long loadLimitNs) {
        this.registries = registries;
        this.loadLimitNs = loadLimitNs;
    }

    /** From now on it is not ready, for good. */
    void drain() {
        draining = true;
    }

    boolean draining() {
        return draining;
    }

    /** Whether new requests should be sent here. */
    State ready() {
        if (draining) {
            return State.DRAINING;
        }
        final State missing =
                missingOrNull(
                        registry -> Capabilities.of(registry.upstreams(), Readiness::answers));
        if (missing != null) {
            return missing;
        }
        return loaded() ? State.READY : State.LOADING;
    }

    /** What the first model lacks where none can be served; null where one can. */
    private State missingOrNull(Function<UpstreamRegistry, Capabilities> known) {
        State ofFirst = null;
        for (UpstreamRegistry registry : registries) {
            final Capabilities here = known.apply(registry);
            if (here.canServe()) {
                return null;
            }
            ofFirst = ofFirst == null ? missing(here) : ofFirst;
        }
        return ofFirst;
    }

    private static State missing(Capabilities known) {
        return known.hasPrefill()
                ? State.NO_DECODE_WORKER
                : known.hasDecode() ? State.NO_PREFILL_WORKER : State.NO_WORKER;
    }

    private static boolean answers(Upstream upstream) {
        return upstream.inUse() && upstream.health().state() != UpstreamHealth.State.UNKNOWN;
    }

    /** Once loaded, always loaded: later repairs of one index are no reason to refuse requests. */
    private boolean loaded() {
        if (!loaded) {
            loaded =
                    System.nanoTime() - startNs > loadLimitNs
                            || registries.stream()
                                    .flatMap(registry -> registry.upstreams().stream())
                                    .flatMap(upstream -> upstream.ranks().stream())
                                    .allMatch(w -> !w.available() || w.ready());
        }
        return loaded;
    }

    /** As {@link #ready}, but a worker that was not contacted yet counts as usable. */
    State health() {
        if (draining) {
            return State.DRAINING;
        }
        final State missing = missingOrNull(UpstreamRegistry::capabilities);
        return missing == null ? State.OK : missing;
    }

    /** As {@link #health}, of one model. */
    State health(UpstreamRegistry registry) {
        if (draining) {
            return State.DRAINING;
        }
        final Capabilities known = registry.capabilities();
        return known.canServe() ? State.OK : missing(known);
    }
}
