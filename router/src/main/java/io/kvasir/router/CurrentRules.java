package io.kvasir.router;

import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.session.SessionAffinity;
import io.kvasir.router.settings.PredictionCheck;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;

import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * The {@link RouterRules} that hold now. {@link #get} is one volatile read, from any thread;
 * changes take a lock of their own, and make all of their checks before anything is another one.
 */
final class CurrentRules {
    private final RouterConfig config;
    private final RouterParts parts;
    private final Supplier<WorkerSet> workers;
    private volatile RouterRules current; // written under this

    CurrentRules(RouterConfig config, RouterParts parts, Supplier<WorkerSet> workers) {
        this.config = config;
        this.parts = parts;
        this.workers = workers;
        current =
                new RouterRules(
                        config.settings(),
                        1,
                        new GuardedPolicy(config.policy(), parts.random, parts.errors),
                        sessionsOrNull(config.settings(), null),
                        pacesOrNull(config.settings(), config.policy(), null));
    }

    RouterRules get() {
        return current;
    }

    /**
     * Checks that a change to these values can be made.
     *
     * @throws IllegalArgumentException if not; the message has each setting that stands against it
     */
    synchronized void check(Settings wanted) {
        final List<Setting<?>> others = ofRouter(current.settings().differences(wanted));
        final List<Setting<?>> fixed = others.stream().filter(row -> !row.isLive()).toList();
        if (!fixed.isEmpty()) {
            throw new IllegalArgumentException(
                    fixed.stream().map(Setting::name).collect(Collectors.joining(", "))
                            + " cannot be changed while the router runs; start it again for that");
        }
        if (others.contains(RouterSettings.SELECTION_POLICY) && config.isPolicyGiven()) {
            throw new IllegalArgumentException(
                    RouterSettings.SELECTION_POLICY
                            + " cannot be changed: the program has given the router a policy of"
                            + " its own");
        }
        final boolean keepsIndex = RouterConfig.keepsIndex(wanted, policyOf(wanted));
        if (!config.isIndexed()
                && (keepsIndex || wanted.get(RouterSettings.SINGLE_FLIGHT) != SingleFlight.OFF)) {
            throw new IllegalArgumentException(
                    describe(wanted, others)
                            + " needs an index, and this router was started without one: "
                            + RouterConfig.whyNoIndex(config.settings())
                            + "; start it with "
                            + RouterSettings.PREFIX_INDEX
                            + "=on");
        }
        // also where an index is kept since the start: the next start would not keep one
        RouterConfig.checkSingleFlight(wanted, keepsIndex);
        RouterConfig.checkRoom(wanted);
        final PredictedPrefixes predicted = parts.predictedOrNull;
        final long blocks = wanted.get(RouterSettings.MAX_TREE_SIZE);
        if (predicted != null
                && others.contains(RouterSettings.MAX_TREE_SIZE)
                && blocks > predicted.config().maxBlocks()) {
            throw new IllegalArgumentException(
                    RouterSettings.MAX_TREE_SIZE
                            + "="
                            + blocks
                            + " exceeds what there is memory for since the start: "
                            + predicted.config().maxBlocks()
                            + "; start the router again for more");
        }
    }

    /** The one in use where its name stays: this thread may not see what has provided it. */
    private SelectionPolicy policyOf(Settings wanted) {
        final boolean isOther =
                !wanted.get(RouterSettings.SELECTION_POLICY)
                        .equals(current.settings().get(RouterSettings.SELECTION_POLICY));
        return isOther ? config.policyOf(wanted) : current.policy().policy();
    }

    private static List<Setting<?>> ofRouter(List<Setting<?>> rows) {
        return rows.stream().filter(RouterSettings.TABLE.rows()::contains).toList();
    }

    private static String describe(Settings values, List<Setting<?>> rows) {
        return rows.stream()
                .map(row -> row + "=" + String.join(" ", values.texts(row)))
                .collect(Collectors.joining(", "));
    }

    /**
     * Changes to these values, or to none of them.
     *
     * @return the version from now on; the one before where no value is another one
     * @throws IllegalArgumentException as of {@link #check}
     */
    synchronized long change(Settings wanted) {
        if (ofRouter(current.settings().differences(wanted)).isEmpty()) {
            return current.version();
        }
        change(wanted, current.version() + 1);
        return current.version();
    }

    /**
     * Changes to these values, or to none of them.
     *
     * @param version by which decisions name them
     * @throws IllegalArgumentException as of {@link #check}
     */
    synchronized void change(Settings wanted, long version) {
        check(wanted);
        final RouterRules now = current;
        final List<Setting<?>> others = ofRouter(now.settings().differences(wanted));
        final SelectionPolicy policy = policyOf(wanted);
        final RouterRules next =
                new RouterRules(
                        wanted,
                        version,
                        now.policy().of(policy),
                        sessionsOrNull(wanted, now.sessionsOrNull()),
                        pacesOrNull(wanted, policy, now.pacesOrNull()));
        if (parts.predictedOrNull != null) {
            limitPredictions(others, wanted);
        }
        current = next;
        if (next.predictionCheck() == PredictionCheck.OFF
                && others.contains(RouterSettings.PREDICTION_CHECK)) {
            for (Worker worker : workers.get().workers()) {
                worker.forgetForecasts(); // else nothing would end what was concluded
            }
        }
    }

    /** What an embedder has set by itself stays where no setting of it is another one. */
    private void limitPredictions(List<Setting<?>> others, Settings wanted) {
        final PredictedPrefixes predicted = parts.predictedOrNull;
        if (others.contains(RouterSettings.MAX_TREE_SIZE)
                || others.contains(RouterSettings.PRUNE_TARGET_RATIO)
                || others.contains(RouterSettings.TTL)) {
            predicted.limits(
                    Math.min(
                            wanted.get(RouterSettings.MAX_TREE_SIZE),
                            predicted.config().maxBlocks()),
                    wanted.get(RouterSettings.PRUNE_TARGET_RATIO),
                    wanted.get(RouterSettings.TTL).toNanos());
        }
    }

    private SessionAffinity sessionsOrNull(Settings settings, SessionAffinity nowOrNull) {
        final long ttlNs = settings.get(RouterSettings.SESSION_TTL).toNanos();
        if (ttlNs == 0) {
            return null;
        }
        return nowOrNull != null
                ? nowOrNull.withTtl(ttlNs)
                : new SessionAffinity(
                        settings.get(RouterSettings.MAX_SESSIONS),
                        parts.random.nextLong(),
                        ttlNs,
                        config.clock());
    }

    /** Paces are kept as long as they are needed, and learned anew when they are again. */
    private PrefillPaces pacesOrNull(
            Settings settings, SelectionPolicy policy, PrefillPaces nowOrNull) {
        if (!policy.looksAtEach() && settings.get(RouterSettings.BUSY_TTFT).isZero()) {
            return null;
        }
        final PrefillPaces paces =
                nowOrNull == null ? new PrefillPaces(parts.board.slots()) : nowOrNull;
        for (Worker worker : workers.get().workers()) {
            paces.of(worker); // so that no decision makes it
        }
        return paces;
    }
}
