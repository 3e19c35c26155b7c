package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.BootstrapAddress;
import io.kvasir.protocol.handoff.Bootstrap;

import java.util.List;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;

/**
 * Where a prefill and a decode worker meet, once for each prompt of a request.
 *
 * @param meetings in the order of the prompts
 */
record Rendezvous(List<Bootstrap> meetings) {
    /**
     * Draws rooms that the prefill worker's own rule sends to the booked rank.
     *
     * @param at bootstrap server of the prefill worker
     * @param ranks of that worker
     */
    static Rendezvous draw(
            BootstrapAddress at, int rank, int ranks, int prompts, RandomGenerator random) {
        return new Rendezvous(
                Stream.generate(
                                () ->
                                        new Bootstrap(
                                                at.host(),
                                                at.port(),
                                                Bootstrap.room(rank, ranks, random)))
                        .limit(prompts)
                        .toList());
    }

    int prompts() {
        return meetings.size();
    }
}
