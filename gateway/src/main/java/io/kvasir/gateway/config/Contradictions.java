package io.kvasir.gateway.config;

import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;

/**
 * Values that are in range and do not go together. What cannot work is an error; what has no effect
 * beside the other values is a warning, as it may wait for a request that asks for it, or for the
 * other value to change.
 */
final class Contradictions {
    /** Several times, so that one lost digest does not drop the bookings. */
    private static final int LEAST_DIGESTS = 2;

    private Contradictions() {}

    /** What cannot work, of all models. */
    static List<String> errors(GatewayConfig config) {
        final List<String> errors = new ArrayList<>();
        for (GatewayConfig model : config.models()) {
            errors.addAll(ofModel(config, model));
        }
        return List.copyOf(new LinkedHashSet<>(errors));
    }

    private static List<String> ofModel(GatewayConfig gateway, GatewayConfig model) {
        final List<String> errors = new ArrayList<>();
        final List<String> main = whyNoRouter(model.settings());
        errors.addAll(main);
        for (String prefill : whyNoRouter(PrefillSettings.of(model))) {
            if (!main.contains(prefill)) {
                errors.add(
                        "the prefill pool, with "
                                + GatewaySettings.PREFILL_OVERLAP_WEIGHT
                                + " as its "
                                + RouterSettings.OVERLAP_WEIGHT
                                + ": "
                                + prefill);
            }
        }
        final Duration digest = model.get(RouterSettings.REPLICA_DIGEST);
        final Duration lease = model.get(RouterSettings.REPLICA_LEASE);
        if (gateway.get(GatewaySettings.REPLICA_SYNC)
                && lease.compareTo(digest.multipliedBy(LEAST_DIGESTS)) < 0) {
            errors.add(
                    "replica-lease-ms="
                            + lease.toMillis()
                            + " must be several times replica-digest-ms="
                            + digest.toMillis()
                            + ": one lost message would drop the bookings of a replica");
        }
        return errors;
    }

    /** What a router says of settings that it cannot be made of; empty where it can. */
    private static List<String> whyNoRouter(Settings settings) {
        try {
            KvRouter.builder().settings(settings).check();
            return List.of();
        } catch (IllegalArgumentException e) {
            return e.getMessage().lines().toList();
        }
    }

    /**
     * What has no effect, or hardly the wanted one.
     *
     * @param started what the gateway was started with, which has decided on the index; {@code
     *     config} of one that is not started
     */
    static List<String> warnings(GatewayConfig config, GatewayConfig started) {
        final List<String> warnings = new ArrayList<>(SettingNeed.unmet(config, started));
        if (!config.get(RouterSettings.TRACK_PREFILL_TOKENS)
                && !config.get(RouterSettings.TRACK_ACTIVE_BLOCKS)) {
            warnings.add(
                    "with track-prefill-tokens and track-active-blocks off all workers cost the"
                            + " same: each is as likely");
        }
        warnings.addAll(SharedAddresses.warnings(config.get(GatewaySettings.WORKERS)));
        if (!RouterConfig.keepsIndex(started.settings())
                && config.get(GatewaySettings.WORKERS).stream().anyMatch(w -> w.events() != null)) {
            warnings.add(
                    "the events of workers are not followed: prefix-index="
                            + RouterSettings.PREFIX_INDEX.print(
                                    config.get(RouterSettings.PREFIX_INDEX))
                            + ", overlap-weight="
                            + RouterSettings.OVERLAP_WEIGHT.print(
                                    config.get(RouterSettings.OVERLAP_WEIGHT)));
        }
        if (config.get(GatewaySettings.RETRY_BACKOFF_MAX)
                        .compareTo(config.get(GatewaySettings.RETRY_BACKOFF))
                < 0) {
            warnings.add(
                    "retry-backoff-ms="
                            + config.get(GatewaySettings.RETRY_BACKOFF).toMillis()
                            + " is more than retry-backoff-max-ms="
                            + config.get(GatewaySettings.RETRY_BACKOFF_MAX).toMillis()
                            + ", which bounds it");
        }
        return List.copyOf(warnings);
    }
}
