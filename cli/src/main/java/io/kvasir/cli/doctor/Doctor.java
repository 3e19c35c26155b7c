package io.kvasir.cli.doctor;

import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Tests engines, a few at a time. */
public final class Doctor {
    private static final int AT_ONCE = 4;

    private final Duration limit;
    private final Clock clock;

    /**
     * One that waits no longer than this.
     *
     * @param limit of each answer and event that is waited for
     * @param clock that engines' clocks are compared with
     */
    public Doctor(Duration limit, Clock clock) {
        this.limit = limit;
        this.clock = clock;
    }

    /**
     * Outcomes of one rank of an engine, of a store of workers or of a gateway.
     *
     * @param name of what was tested; of an engine with its rank where there are several
     * @param url of its server; of a store where it is
     * @param checks in the order in which they were made
     */
    public record Findings(String name, String url, List<Check> checks) {
        /** How many ended so. */
        public long count(Check.Result result) {
            return checks.stream().filter(check -> check.result() == result).count();
        }
    }

    /** Takes outcomes as they come, in the order of the engines. */
    @FunctionalInterface
    public interface Report {
        /** Takes those of one rank. */
        void take(Findings findings);
    }

    /** Tests engines. */
    public void test(List<TestedEngine> engines, Report report) throws InterruptedException {
        try (ExecutorService threads =
                Executors.newFixedThreadPool(
                        AT_ONCE, Thread.ofPlatform().name("kvasir-doctor-", 0).factory())) {
            final List<Future<List<Findings>>> running = new ArrayList<>();
            for (TestedEngine tested : engines) {
                running.add(threads.submit(() -> test(tested)));
            }
            try {
                for (Future<List<Findings>> each : running) {
                    each.get().forEach(report::take);
                }
            } catch (ExecutionException e) {
                throw new IllegalStateException("a test ended by an error", e.getCause());
            } finally {
                threads.shutdownNow();
            }
        }
    }

    private List<Findings> test(TestedEngine tested) throws InterruptedException {
        final List<Findings> findings = new ArrayList<>();
        final String name = tested.worker().name();
        final String url = tested.worker().url().toString();
        try (EngineApi api = new EngineApi(tested, limit)) {
            final List<Check> server = new ArrayList<>();
            final ServerChecks servers = new ServerChecks(tested, api, clock, server);
            final boolean there = servers.run();
            final int ranks = there ? tested.worker().dataParallelSize() : 1;
            final int stated = there ? servers.statedBlockSize() : 0;
            for (int rank = 0; rank < ranks; rank++) {
                final List<Check> checks = new ArrayList<>(rank == 0 ? server : List.of());
                if (there) {
                    new EventChecks(
                                    tested,
                                    api,
                                    servers.modelOrNull(),
                                    rank,
                                    stated,
                                    limit,
                                    new SplittableRandom(),
                                    checks)
                            .run();
                }
                findings.add(new Findings(ranks == 1 ? name : name + "/" + rank, url, checks));
            }
        }
        return findings;
    }
}
