package io.kvasir.gateway.config;

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What a worker does where prefill and decode are two workers' work, and how it hands over.
 *
 * @param role part of a request that it is there for
 * @param handoff protocol of its engine; without meaning for one that does both
 * @param bootstrap where decode workers meet it; null where the protocol knows none, and for
 *     workers that decode alone
 */
public record Disaggregation(WorkerRole role, HandoffProtocol handoff, BootstrapAddress bootstrap) {
    static final List<String> KEYS = List.of("role", "handoff", "bootstrap");

    /** A worker that prefills and decodes. */
    public static final Disaggregation NONE =
            new Disaggregation(WorkerRole.BOTH, HandoffProtocol.VLLM, null);

    /** Checks that nothing contradicts. */
    public Disaggregation {
        Objects.requireNonNull(role, "role");
        Objects.requireNonNull(handoff, "handoff");
        if (bootstrap != null && handoff != HandoffProtocol.SGLANG) {
            throw new IllegalArgumentException(
                    "bootstrap="
                            + bootstrap
                            + " with handoff="
                            + handoff.spelling()
                            + ": only sglang meets there; leave one of them out");
        }
        if (bootstrap != null && role == WorkerRole.DECODE) {
            throw new IllegalArgumentException(
                    "bootstrap="
                            + bootstrap
                            + " with role=decode: it is the prefill worker's; leave it out here");
        }
    }

    /**
     * Makes it of keys and values; others are ignored.
     *
     * @param url of the worker, for what is not given
     */
    static Disaggregation of(Map<String, String> values, URI url) {
        final WorkerRole role = WorkerRole.parse(values.getOrDefault("role", "both"));
        final String given = values.get("bootstrap");
        final HandoffProtocol handoff =
                HandoffProtocol.parse(
                        values.getOrDefault("handoff", given == null ? "vllm" : "sglang"));
        return new Disaggregation(
                role,
                handoff,
                given != null
                        ? BootstrapAddress.parse(given)
                        : handoff == HandoffProtocol.SGLANG && role != WorkerRole.DECODE
                                ? BootstrapAddress.beside(url)
                                : null);
    }
}
