package io.kvasir.gateway.config;

import io.kvasir.router.settings.WrongSettingsException;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A worker as a {@code Discovery} describes it: endpoints and limits, and what it is there for.
 * Another description under the same name is another worker, which takes the place of the former.
 *
 * @param model served model
 * @param generation set by the source to have a worker with the same description count as a new
 *     one, as after a restart with an empty cache
 * @param worker its name, endpoints and limits
 */
public record DiscoveredWorker(String model, long generation, WorkerConfig worker) {
    private static final String GENERATION = "generation";

    /** Keys of a worker in YAML and JSON. */
    static final List<String> KEYS =
            Stream.concat(WorkerConfig.KEYS.stream(), Stream.of(GENERATION)).toList();

    /** Checks that nothing but the generation is left out; the worker is one of the model. */
    public DiscoveredWorker {
        Objects.requireNonNull(model, "model");
        worker = worker.withModel(model);
    }

    /**
     * A worker as its source describes it.
     *
     * @param model where the worker names none
     */
    public static DiscoveredWorker of(String model, WorkerConfig worker) {
        return of(model, 0, worker);
    }

    private static DiscoveredWorker of(String model, long generation, WorkerConfig worker) {
        return new DiscoveredWorker(
                Objects.requireNonNullElse(worker.model(), model), generation, worker);
    }

    /**
     * Makes a worker of keys and values: those of {@link WorkerConfig}, and {@code generation}.
     *
     * @param model where the texts name none
     * @throws IllegalArgumentException if keys or values are wrong; the message has a line for each
     *     of them
     */
    public static DiscoveredWorker of(String model, Map<String, String> texts) {
        final Map<String, String> rest = new LinkedHashMap<>(texts);
        rest.remove(GENERATION);
        final String generation = texts.getOrDefault(GENERATION, "0");
        try {
            return of(model, generation(generation), WorkerConfig.of(rest));
        } catch (IllegalArgumentException first) {
            WrongSettingsException.throwIfAnyFails(
                    List.of(() -> generation(generation), () -> WorkerConfig.of(rest)));
            throw first;
        }
    }

    private static long generation(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("generation=" + text + " must be a whole number", e);
        }
    }

    /** Part of a request that it is there for. */
    public WorkerRole role() {
        return worker.disaggregation().role();
    }

    /** Name of the worker, unique among those of a gateway. */
    public String name() {
        return worker.name();
    }
}
