package io.kvasir.services.indexer;

import io.kvasir.pipeline.source.ZmqAddress;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * An engine that is registered when the indexer starts.
 *
 * @param instance id of the instance, unsigned
 * @param dpRank data-parallel rank
 * @param endpoint ZMQ address of its events
 * @param model name of its model
 * @param routingGroup its routing group
 * @param blockSize tokens per block
 */
public record InitialWorker(
        long instance,
        int dpRank,
        String endpoint,
        String model,
        String routingGroup,
        int blockSize) {
    /**
     * Reads a list {@code id[:dp]=address,…}.
     *
     * @throws IllegalArgumentException if it is none; the message names the entry
     */
    public static List<InitialWorker> parse(
            String text, String model, String routingGroup, int blockSize) {
        final List<InitialWorker> workers = new ArrayList<>();
        final Set<Rank> ranks = new HashSet<>();
        for (String entry : text.split(",", -1)) {
            if (entry.isBlank()) {
                continue;
            }
            final int equals = entry.indexOf('=');
            if (equals < 0) {
                throw wrong(entry, "it must be id=address or id:dp=address");
            }
            final String[] names = entry.substring(0, equals).strip().split(":", -1);
            if (names.length > 2) {
                throw wrong(entry, "it must be id=address or id:dp=address");
            }
            try {
                workers.add(
                        new InitialWorker(
                                Long.parseUnsignedLong(names[0]),
                                names.length == 1 ? 0 : Integer.parseInt(names[1]),
                                entry.substring(equals + 1).strip(),
                                model,
                                routingGroup,
                                blockSize));
            } catch (NumberFormatException e) {
                throw wrong(entry, "id and dp rank must be numbers of 0 or more");
            }
            if (workers.getLast().dpRank() < 0) {
                throw wrong(entry, "id and dp rank must be numbers of 0 or more");
            }
            check(entry, workers.getLast(), ranks);
        }
        return workers;
    }

    /** What a service that registers it would refuse. */
    private static void check(String entry, InitialWorker worker, Set<Rank> before) {
        try {
            ZmqAddress.checkConnectable(worker.endpoint());
        } catch (IllegalArgumentException e) {
            throw wrong(entry, e.getMessage());
        }
        if (!before.add(new Rank(worker.instance(), worker.dpRank()))) {
            throw wrong(entry, "its id and dp rank are those of another one");
        }
    }

    private record Rank(long instance, int dpRank) {}

    private static IllegalArgumentException wrong(String entry, String why) {
        return new IllegalArgumentException("worker '" + entry.strip() + "': " + why);
    }
}
