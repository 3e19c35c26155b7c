package io.kvasir.gateway.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A worker as a {@code Discovery} describes it: endpoints and limits, and what it is there for.
 * Another description under the same name is another worker, which takes the place of the former.
 *
 * @param model served model
 * @param role part of a request that it is there for
 * @param generation set by the source to have a worker with the same description count as a new
 *     one, as after a restart with an empty cache
 * @param worker its name, endpoints and limits
 */
public record DiscoveredWorker(String model, Role role, long generation, WorkerConfig worker) {
    /** Part of a request that a worker is there for. */
    public enum Role {
        /** Prefill and decode. */
        BOTH,
        PREFILL,
        DECODE;

        /** As sources and logs write it. */
        public String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }

        private static Role of(String text) {
            for (Role role : values()) {
                if (role.spelling().equals(text)) {
                    return role;
                }
            }
            throw new IllegalArgumentException("role=" + text + "; one of: both, prefill, decode");
        }
    }

    private static final List<String> OWN_KEYS = List.of("model", "role", "generation");

    /** Keys of a worker in YAML and JSON. */
    static final List<String> KEYS =
            Stream.concat(WorkerConfig.KEYS.stream(), OWN_KEYS.stream()).toList();

    /** Checks that nothing but the generation is left out. */
    public DiscoveredWorker {
        Objects.requireNonNull(model, "model");
        Objects.requireNonNull(role, "role");
        Objects.requireNonNull(worker, "worker");
    }

    /** A worker of one model that prefills and decodes. */
    public static DiscoveredWorker of(String model, WorkerConfig worker) {
        return new DiscoveredWorker(model, Role.BOTH, 0, worker);
    }

    /**
     * Makes a worker of keys and values: those of {@link WorkerConfig}, and {@code model}, {@code
     * role}, {@code generation}.
     *
     * @param model where the texts name none
     * @throws IllegalArgumentException if a key or value is wrong; the message names it
     */
    public static DiscoveredWorker of(String model, Map<String, String> texts) {
        final Map<String, String> rest = new LinkedHashMap<>(texts);
        OWN_KEYS.forEach(rest::remove);
        return new DiscoveredWorker(
                texts.getOrDefault("model", model),
                Role.of(texts.getOrDefault("role", "both")),
                WorkerConfig.number("generation", texts.getOrDefault("generation", "0")),
                WorkerConfig.of(rest));
    }

    /** Name of the worker, unique among those of a gateway. */
    public String name() {
        return worker.name();
    }
}
