package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.routing.OverrideTexts.Kind;
import io.kvasir.gateway.routing.OverrideTexts.Text;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;

import org.eclipse.jetty.http.HttpFields;

/**
 * Routing overrides of one request, from its headers ({@code x-kvasir-…}) and from members of its
 * body: {@link OverrideTexts} has their names.
 *
 * @param mode null for the gateway's own
 * @param overlapWeight NaN for the gateway's own
 * @param overlapCredit what a block on a worker's device counts; NaN for 1
 * @param sharedMultiplier what one of shared storage counts; NaN for the gateway's own
 * @param temperature NaN for the gateway's own
 * @param assumeReuse whether the request shares blocks; null for the gateway's own, as the two next
 * @param trackPrefill whether its prompt counts as work
 * @param trackOutput whether what it generates counts as load
 * @param pin the worker that answers; null for any
 * @param prefillPin the prefill worker of a split request; null for any
 * @param session of the request, as any caller may say; null for none
 * @param constraints what it asks of labels and taints of its workers
 */
public record RoutingHeaders(
        RoutingMode mode,
        double overlapWeight,
        double overlapCredit,
        double sharedMultiplier,
        double temperature,
        Boolean assumeReuse,
        Boolean trackPrefill,
        Boolean trackOutput,
        PinnedWorker pin,
        PinnedWorker prefillPin,
        String session,
        RoutingConstraints constraints) {
    /** Every header of the gateway's own starts so; none of a client's is passed on. */
    public static final String PREFIX = "x-kvasir-";

    /** The prefill worker: of a request, which one it is to be; of an answer, which one it was. */
    public static final String PREFILL_WORKER = PREFIX + "prefill-worker";

    /** Of a caller that is not trusted. */
    public static final RoutingHeaders NONE =
            new RoutingHeaders(
                    null,
                    Double.NaN,
                    Double.NaN,
                    Double.NaN,
                    Double.NaN,
                    null,
                    null,
                    null,
                    null,
                    null,
                    null,
                    RoutingConstraints.NONE);

    /**
     * Reads what a trusted caller says.
     *
     * @throws ApiException 400 if something cannot be read, or names no worker of its pool
     */
    public static RoutingHeaders parse(
            HttpFields headers, InferenceRequest request, UpstreamRegistry registry)
            throws ApiException {
        final OverrideTexts texts = new OverrideTexts(headers, request);
        return new RoutingHeaders(
                mode(texts.of(Kind.MODE)),
                number(texts.of(Kind.OVERLAP_WEIGHT)),
                number(texts.of(Kind.OVERLAP_CREDIT)),
                share(
                        texts.of(Kind.SHARED_CACHE_MULTIPLIER),
                        RouterSettings.SHARED_CACHE_MULTIPLIER),
                number(texts.of(Kind.TEMPERATURE)),
                bool(texts.of(Kind.ASSUME_KV_REUSE)),
                bool(texts.of(Kind.TRACK_PREFILL_TOKENS)),
                bool(texts.of(Kind.TRACK_OUTPUT_BLOCKS)),
                PinnedWorker.of(
                        texts.of(Kind.WORKER),
                        texts.of(Kind.DP_RANK),
                        registry.workers(WorkerPool.MAIN),
                        ""),
                PinnedWorker.of(
                        texts.of(Kind.PREFILL_WORKER),
                        texts.of(Kind.PREFILL_DP_RANK),
                        registry.workers(WorkerPool.PREFILL),
                        "prefill "),
                null,
                RoutingConstraints.parse(headers));
    }

    /**
     * The same with what the body asks of labels and taints.
     *
     * @param hints {@code nvext.routing_constraints}; null for none
     * @throws ApiException 400 if they cannot be read
     */
    public RoutingHeaders withHints(JsonNode hints) throws ApiException {
        return hints == null ? this : with(session, constraints.and(hints));
    }

    /**
     * The same with the session of the request.
     *
     * @param id null for none
     */
    public RoutingHeaders ofSession(String id) {
        return id == null ? this : with(id, constraints);
    }

    private RoutingHeaders with(String ofSession, RoutingConstraints asked) {
        return new RoutingHeaders(
                mode,
                overlapWeight,
                overlapCredit,
                sharedMultiplier,
                temperature,
                assumeReuse,
                trackPrefill,
                trackOutput,
                pin,
                prefillPin,
                ofSession,
                asked);
    }

    /** Has a request be routed so, by the worker that answers. */
    void fill(RouteRequest request) {
        request.mode(mode).session(session);
        if (pin != null) {
            pin.fill(request);
        }
        if (!Double.isNaN(overlapWeight)) {
            request.overlapWeight(overlapWeight);
        }
        if (!Double.isNaN(overlapCredit)) {
            request.overlapCredit(overlapCredit);
        }
        if (!Double.isNaN(sharedMultiplier)) {
            request.sharedCacheMultiplier(sharedMultiplier);
        }
        if (!Double.isNaN(temperature)) {
            request.temperature(temperature);
        }
        if (assumeReuse != null) {
            request.assumeKvReuse(assumeReuse);
        }
        if (trackPrefill != null) {
            request.trackPrefillTokens(trackPrefill);
        }
        if (trackOutput != null) {
            request.trackOutputBlocks(trackOutput);
        }
    }

    private static RoutingMode mode(Text text) throws ApiException {
        if (text == null) {
            return null;
        }
        try {
            return RoutingMode.parse(text.value());
        } catch (IllegalArgumentException e) {
            throw text.refused(e.getMessage());
        }
    }

    private static double number(Text text) throws ApiException {
        if (text == null) {
            return Double.NaN;
        }
        try {
            final double value = Double.parseDouble(text.value());
            if (value >= 0 && value < Double.POSITIVE_INFINITY) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw notANumber(text);
        }
        throw notANumber(text);
    }

    /** One from 0 to 1, as the setting that it overrides. */
    private static double share(Text text, Setting<Double> overridden) throws ApiException {
        final double value = number(text);
        if (value > 1) {
            throw text.refused(
                    "'" + text.value() + "' must be a number from 0 to 1, as " + overridden);
        }
        return value;
    }

    private static ApiException notANumber(Text text) {
        return text.refused("'" + text.value() + "' must be a finite number that is not negative");
    }

    private static Boolean bool(Text text) throws ApiException {
        if (text == null) {
            return null;
        }
        return switch (text.value()) {
            case "true" -> true;
            case "false" -> false;
            default -> throw text.refused("'" + text.value() + "' must be true or false");
        };
    }
}
