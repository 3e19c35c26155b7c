package io.kvasir.gateway.config;

import io.kvasir.pipeline.wire.LoraNumbers;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The LoRA adapters of a worker, as far as they are said; what it lists itself comes beside them.
 *
 * @param names of those that it serves
 * @param numbers names by the numbers that its events give them ({@code lora_id}), in every life of
 *     its engine
 */
public record WorkerAdapters(Set<String> names, Map<Long, String> numbers) {
    /** Nothing is said. */
    public static final WorkerAdapters NONE = new WorkerAdapters(Set.of(), Map.of());

    private static final String NAMES = "lora";
    private static final String NUMBERS = "lora-ids";
    static final List<String> KEYS = List.of(NAMES, NUMBERS);

    /** Keeps what was given. */
    public WorkerAdapters {
        names = Set.copyOf(names);
        numbers = Map.copyOf(numbers);
    }

    static WorkerAdapters of(Map<String, String> values) {
        return new WorkerAdapters(
                names(values.getOrDefault(NAMES, "")), numbers(values.getOrDefault(NUMBERS, "")));
    }

    private static Set<String> names(String text) {
        final Set<String> names = new LinkedHashSet<>();
        for (String name : text.isEmpty() ? new String[0] : text.split(";", -1)) {
            if (name.isBlank() || !names.add(name)) {
                throw new IllegalArgumentException(
                        NAMES + "=" + text + ": '" + name + "' is no name, or is given twice");
            }
        }
        return names;
    }

    private static Map<Long, String> numbers(String text) {
        try {
            return LoraNumbers.parse(text);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(NUMBERS + "=" + e.getMessage(), e);
        }
    }

    /**
     * Names by number as a JSON object of an operator has them: {@code {"NAME": 7}}.
     *
     * @throws IllegalArgumentException if a number is 0 or given twice
     */
    public static Map<Long, String> numbers(Map<String, String> byName) {
        final StringBuilder text = new StringBuilder();
        byName.forEach(
                (name, number) ->
                        text.append(text.isEmpty() ? "" : ";")
                                .append(name)
                                .append(':')
                                .append(number));
        return new LinkedHashMap<>(numbers(text.toString()));
    }
}
