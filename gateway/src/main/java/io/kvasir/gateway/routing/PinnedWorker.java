package io.kvasir.gateway.routing;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.routing.OverrideTexts.Text;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;

import java.util.List;

/**
 * The worker that a request is for.
 *
 * @param worker one of its server
 * @param anyRank whether the server's other ranks will do as well
 */
record PinnedWorker(Worker worker, boolean anyRank) {
    /**
     * Reads which worker is meant: a name, with or without a rank, or both in one.
     *
     * @param name null for any worker
     * @param rank null for any rank
     * @param kind of worker, for messages: empty, or a word and a blank
     * @return null for any worker
     * @throws ApiException 400 if there is none such
     */
    static PinnedWorker of(Text name, Text rank, List<Worker> workers, String kind)
            throws ApiException {
        if (name == null) {
            if (rank != null) {
                throw rank.refused("a rank needs the " + kind + "worker whose it is");
            }
            return null;
        }
        final int wanted = rank == null ? -1 : number(rank);
        Worker found = null; // by its name
        boolean several = false;
        for (Worker worker : workers) {
            final boolean isExact = worker.toString().equals(name.value());
            if (isExact || worker.name().equals(name.value())) {
                if (wanted < 0 ? isExact : worker.dpRank() == wanted) {
                    return new PinnedWorker(worker, false);
                }
                several = found != null;
                found = worker;
            }
        }
        if (found == null) {
            throw name.refused("no " + kind + "worker is named '" + name.value() + "'");
        }
        if (wanted >= 0) {
            throw rank.refused(kind + "worker '" + name.value() + "' has no rank " + rank.value());
        }
        return new PinnedWorker(found, several);
    }

    private static int number(Text text) throws ApiException {
        try {
            final int rank = Integer.parseInt(text.value());
            if (rank >= 0) {
                return rank;
            }
        } catch (NumberFormatException e) {
            throw text.refused("'" + text.value() + "' is no rank");
        }
        throw text.refused("'" + text.value() + "' is no rank");
    }

    /** Has a request go there. */
    void fill(RouteRequest request) {
        if (anyRank) {
            request.pinAnyRank(worker);
        } else {
            request.pin(worker);
        }
    }
}
