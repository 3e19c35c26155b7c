package io.kvasir.gateway.config;

import java.net.URI;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;

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
        final Map<Key, NavigableMap<String, WorkerConfig>> byEvents = new HashMap<>();
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
                final NavigableMap<String, WorkerConfig> others =
                        byEvents.computeIfAbsent(
                                new Key(worker.model(), address), _ -> new TreeMap<>());
                final WorkerConfig other = sameTopicOrNull(worker.topic(), others);
                if (other != null) {
                    warnings.add(
                            both(other, worker)
                                    + " follow the same events, of "
                                    + address
                                    + ": the blocks of one engine count for each of them");
                }
                others.putIfAbsent(worker.topic(), worker);
            }
        }
        return List.copyOf(warnings);
    }

    private static String both(WorkerConfig first, WorkerConfig second) {
        return "the workers " + first.name() + " and " + second.name();
    }

    /** Another one, where a subscription by one of both receives what the other does. */
    private static WorkerConfig sameTopicOrNull(
            String topic, NavigableMap<String, WorkerConfig> others) {
        for (int length = 0; length < topic.length(); length++) {
            final WorkerConfig other = others.get(topic.substring(0, length));
            if (other != null) {
                return other;
            }
        }
        final Map.Entry<String, WorkerConfig> next = others.ceilingEntry(topic);
        return next != null && next.getKey().startsWith(topic) ? next.getValue() : null;
    }
}
