package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.time.Duration;
import java.util.Optional;

/** The far end in another process, reached through the exchange. Every wait has a deadline. */
final class ExchangedRemoteSide implements RemoteSide {
    /** Loading NIXL and a GPU's context take seconds each on a cold machine. */
    private static final Duration START = Duration.ofSeconds(60);

    /** Filling or checking a pool takes less than a second. */
    private static final Duration ANSWER = Duration.ofSeconds(20);

    private final Exchange exchange;
    private final TargetInfo target;
    private final String name;
    private int errands;

    private ExchangedRemoteSide(Exchange exchange, TargetInfo target, String name) {
        this.exchange = exchange;
        this.target = target;
        this.name = name;
    }

    /**
     * Waits for the target and makes it known to this end's agent.
     *
     * @throws BenchFailure if it does not come, or says that it failed
     */
    static ExchangedRemoteSide meet(Exchange exchange, NixlEnd end) {
        final TargetInfo target = TargetInfo.parse(await(exchange, TargetInfo.NAME, START, 0));
        final String name = end.transfers().load(target.metadataBytes());
        return new ExchangedRemoteSide(exchange, target, name);
    }

    private static String await(Exchange exchange, String message, Duration limit, long pid) {
        final long deadline = System.nanoTime() + limit.toNanos();
        while (true) {
            final Optional<String> text = exchange.poll(message);
            if (text.isPresent()) {
                return text.get();
            }
            final Optional<String> failure = exchange.poll(Exchange.FAILED);
            if (failure.isPresent()) {
                throw new BenchFailure("the target failed: " + failure.get());
            }
            if (pid != 0 && ProcessHandle.of(pid).isEmpty()) {
                throw new BenchFailure("the target, process %d, has ended".formatted(pid));
            }
            if (System.nanoTime() - deadline > 0) {
                throw new BenchFailure(
                        "the target has put no %s into the exchange for %d s"
                                .formatted(message, limit.toSeconds()));
            }
            Exchange.pause();
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public PoolRange range(NixlMemory memory) {
        final PoolRange range = target.pools().get(memory);
        if (range == null) {
            throw new BenchFailure(
                    "the target has no pool in " + memory + ": both ends need the same --kinds");
        }
        return range;
    }

    @Override
    public void fill(NixlMemory memory, Cell cell, long seed) {
        ask(new TargetCommand(TargetCommand.Task.FILL, memory, cell, seed));
    }

    @Override
    public void verify(NixlMemory memory, Cell cell, long seed) {
        ask(new TargetCommand(TargetCommand.Task.VERIFY, memory, cell, seed));
    }

    private void ask(TargetCommand errand) {
        final int number = ++errands;
        exchange.put(TargetCommand.requestName(number), errand.text());
        final String answer =
                await(exchange, TargetCommand.answerName(number), ANSWER, target.pid());
        if (!answer.equals(TargetCommand.DONE)) {
            throw new BenchFailure("the target says: " + answer);
        }
    }
}
