package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What is said of the workers of a source that are left out: each once while its reason is the
 * same, though it registers anew, and those with one reason in one text. Of the source's thread.
 */
final class LeftOutWorkers {
    private static final int MOST_NAMED = 3;

    private Map<DiscoveredWorker, String> said = Map.of(); // why, by the last view; of any run

    /**
     * Takes those of a view.
     *
     * @param refused why each is left out
     * @return what is to be said; empty where it was said before
     */
    List<String> news(Map<DiscoveredWorker, String> refused) {
        final Map<DiscoveredWorker, String> now = new HashMap<>();
        final Map<String, List<String>> names = new LinkedHashMap<>(); // by reason
        refused.forEach(
                (worker, why) -> {
                    final DiscoveredWorker ofAnyRun =
                            new DiscoveredWorker(worker.model(), 0, worker.worker());
                    now.put(ofAnyRun, why);
                    if (!why.equals(said.get(ofAnyRun))) {
                        names.computeIfAbsent(why, _ -> new ArrayList<>()).add(worker.name());
                    }
                });
        said = now;
        return names.entrySet().stream().map(e -> text(e.getValue(), e.getKey())).toList();
    }

    private static String text(List<String> names, String why) {
        if (names.size() == 1) {
            return "worker " + names.getFirst() + " is left out: " + why;
        }
        final int others = names.size() - MOST_NAMED;
        return names.size()
                + " workers are left out: "
                + why
                + ": "
                + names.stream().limit(MOST_NAMED).collect(Collectors.joining(", "))
                + (others > 0 ? " and " + others + " more" : "");
    }
}
