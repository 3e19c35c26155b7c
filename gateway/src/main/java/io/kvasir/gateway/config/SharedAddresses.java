package io.kvasir.gateway.config;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Workers of one model that have an address in common, mostly by a mistake in a copied line: what
 * one server holds and does counts for both. A broker passes the events of several engines on by
 * one address, each with a topic of its own.
 */
final class SharedAddresses {
    private record Key(String model, String address) {}

    private SharedAddresses() {}

    /** One warning for each worker and kind of address that another has, too. */
    static List<String> warnings(List<WorkerConfig> workers) {
        final Set<String> warnings = new LinkedHashSet<>();
        final Map<Key, WorkerConfig> byUrl = new HashMap<>();
        final Map<Key, List<WorkerConfig>> byEvents = new HashMap<>();
        for (WorkerConfig worker : workers) {
            final URI url = worker.url();
            final WorkerConfig first =
                    byUrl.putIfAbsent(new Key(worker.model(), url.toString()), worker);
            if (first != null) {
                warnings.add(
                        both(first, worker)
                                + " have the same url: the requests and blocks of one server count"
                                + " for each of them");
            }
            if (worker.events() == null) {
                continue;
            }
            for (int rank = 0; rank < worker.dataParallelSize(); rank++) {
                final String address = worker.events(rank);
                final List<WorkerConfig> others =
                        byEvents.computeIfAbsent(
                                new Key(worker.model(), address), _ -> new ArrayList<>(1));
                for (WorkerConfig other : others) {
                    if (isSameTopic(worker.topic(), other.topic())) {
                        warnings.add(
                                both(other, worker)
                                        + " follow the same events, of "
                                        + address
                                        + ": the blocks of one engine count for each of them");
                        break;
                    }
                }
                others.add(worker);
            }
        }
        return List.copyOf(warnings);
    }

    private static String both(WorkerConfig first, WorkerConfig second) {
        return "the workers " + first.name() + " and " + second.name();
    }

    /** Whether a subscription by one receives what the other does. */
    private static boolean isSameTopic(String topic, String other) {
        return topic.startsWith(other) || other.startsWith(topic);
    }
}
