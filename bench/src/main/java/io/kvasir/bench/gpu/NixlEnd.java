package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlAgent;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.panama.nixl.NixlProbe;
import io.kvasir.panama.nixl.NixlTransfers;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A NIXL agent with one backend and registered pools. For the thread that opened it, which has the
 * GPU's context current where a pool is in GPU memory. Closed before its pools.
 */
final class NixlEnd implements AutoCloseable {
    private final NixlAgent agent;
    private final List<Pool> registered = new ArrayList<>();

    private NixlEnd(NixlAgent agent) {
        this.agent = agent;
    }

    /**
     * Loads NIXL, starts an agent and registers the pools.
     *
     * @param role a word of the agent's name
     * @param pools what peers may reach
     * @throws MissingPartException if there is no NIXL
     * @throws io.kvasir.panama.nixl.NixlException if the backend does not start or takes no such
     *     memory
     */
    static NixlEnd open(String role, List<Pool> pools) {
        final NixlAvailability.Available nixl =
                switch (NixlProbe.probe()) {
                    case NixlAvailability.Absent absent ->
                            throw new MissingPartException(absent.describe());
                    case NixlAvailability.Available available -> available;
                };
        System.out.println(nixl.describe());
        final String name = "gpu-bench-%s-%d".formatted(role, ProcessHandle.current().pid());
        final NixlEnd end = new NixlEnd(nixl.library().createAgent(name, NixlAgentConfig.DEFAULT));
        try {
            end.agent.createBackend(nixl.loopback() ? "LOOPBACK" : "UCX", Map.of());
            for (Pool pool : pools) {
                end.register(pool);
            }
            return end;
        } catch (RuntimeException e) {
            end.close();
            throw e;
        }
    }

    private void register(Pool pool) {
        final PoolRange range = pool.range();
        transfers().register(pool.memory(), addresses(range), lengths(range), devices(range));
        registered.add(pool);
    }

    private static long[] addresses(PoolRange range) {
        return new long[] {range.address()};
    }

    private static long[] lengths(PoolRange range) {
        return new long[] {range.length()};
    }

    private static int[] devices(PoolRange range) {
        return new int[] {range.device()};
    }

    String name() {
        return agent.name();
    }

    NixlTransfers transfers() {
        return agent.transfers();
    }

    @Override
    public void close() {
        try {
            for (Pool pool : registered.reversed()) {
                final PoolRange range = pool.range();
                transfers()
                        .deregister(
                                pool.memory(), addresses(range), lengths(range), devices(range));
            }
        } finally {
            agent.close();
        }
    }
}
