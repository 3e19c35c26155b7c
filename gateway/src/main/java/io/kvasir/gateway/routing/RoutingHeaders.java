package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;

import org.eclipse.jetty.http.HttpFields;

import java.util.List;

/**
 * Routing overrides of one request, from its headers: {@code x-kvasir-mode}, {@code
 * x-kvasir-overlap-weight}, {@code x-kvasir-temperature}, {@code x-kvasir-worker} and {@code
 * x-kvasir-prefill-worker} (name, or name/rank).
 *
 * @param mode null for the gateway's own
 * @param overlapWeight NaN for the gateway's own
 * @param temperature NaN for the gateway's own
 * @param pin the worker that answers; null for any
 * @param prefillPin the prefill worker of a split request; null for any
 * @param session of the request, as any caller may say; null for none
 * @param constraints what it asks of labels and taints of its workers
 */
public record RoutingHeaders(
        RoutingMode mode,
        double overlapWeight,
        double temperature,
        Worker pin,
        Worker prefillPin,
        String session,
        RoutingConstraints constraints) {
    /** Every header of the gateway's own starts so; none of a client's is passed on. */
    public static final String PREFIX = "x-kvasir-";

    private static final String WORKER = "x-kvasir-worker";

    /** The prefill worker: of a request, which one it is to be; of an answer, which one it was. */
    public static final String PREFILL_WORKER = PREFIX + "prefill-worker";

    /** Of a caller that is not trusted. */
    public static final RoutingHeaders NONE =
            new RoutingHeaders(
                    null, Double.NaN, Double.NaN, null, null, null, RoutingConstraints.NONE);

    /**
     * Reads the headers of a trusted caller.
     *
     * @throws ApiException 400 if one cannot be read, or names no worker of its pool
     */
    public static RoutingHeaders parse(HttpFields headers, UpstreamRegistry registry)
            throws ApiException {
        final String mode = headers.get("x-kvasir-mode");
        return new RoutingHeaders(
                mode == null ? null : mode(mode),
                number(headers, "x-kvasir-overlap-weight"),
                number(headers, "x-kvasir-temperature"),
                worker(headers, WORKER, registry.workers(WorkerPool.MAIN)),
                worker(headers, PREFILL_WORKER, registry.workers(WorkerPool.PREFILL)),
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
        return hints == null
                ? this
                : new RoutingHeaders(
                        mode,
                        overlapWeight,
                        temperature,
                        pin,
                        prefillPin,
                        session,
                        constraints.and(hints));
    }

    /**
     * The same with the session of the request.
     *
     * @param id null for none
     */
    public RoutingHeaders ofSession(String id) {
        return id == null
                ? this
                : new RoutingHeaders(
                        mode, overlapWeight, temperature, pin, prefillPin, id, constraints);
    }

    private static RoutingMode mode(String text) throws ApiException {
        try {
            return RoutingMode.parse(text);
        } catch (IllegalArgumentException e) {
            throw ApiException.invalid("x-kvasir-mode", "header x-kvasir-mode: " + e.getMessage());
        }
    }

    private static double number(HttpFields headers, String name) throws ApiException {
        final String text = headers.get(name);
        if (text == null) {
            return Double.NaN;
        }
        try {
            final double value = Double.parseDouble(text);
            if (value >= 0 && value < Double.POSITIVE_INFINITY) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw notANumber(name, text);
        }
        throw notANumber(name, text);
    }

    private static ApiException notANumber(String name, String text) {
        return ApiException.invalid(
                name,
                "header " + name + ": '" + text + "' must be a finite number that is not negative");
    }

    private static Worker worker(HttpFields headers, String header, List<Worker> workers)
            throws ApiException {
        final String name = headers.get(header);
        if (name == null) {
            return null;
        }
        for (Worker worker : workers) {
            if (worker.name().equals(name) || worker.toString().equals(name)) {
                return worker;
            }
        }
        throw ApiException.invalid(
                header,
                "header "
                        + header
                        + ": no "
                        + (header.equals(WORKER) ? "" : "prefill ")
                        + "worker is named '"
                        + name
                        + "'");
    }
}
