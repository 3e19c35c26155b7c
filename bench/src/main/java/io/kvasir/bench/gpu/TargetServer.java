package io.kvasir.bench.gpu;

import java.util.Optional;

/**
 * The target's half of the exchange: introduces itself, then runs errands until it is stopped.
 * Everything but {@link #stop} is for the thread that owns the pools.
 */
final class TargetServer {
    private final Exchange exchange;
    private final Pools pools;
    private final Watchdog watchdog;
    private volatile boolean stopped;

    TargetServer(Exchange exchange, Pools pools, Watchdog watchdog) {
        this.exchange = exchange;
        this.pools = pools;
        this.watchdog = watchdog;
    }

    /** Serves; returns once stopped. */
    void serve(TargetInfo introduction) {
        exchange.put(TargetInfo.NAME, introduction.text());
        watchdog.step("serve");
        int number = 1;
        while (!stopped) {
            final Optional<String> request = exchange.poll(TargetCommand.requestName(number));
            if (request.isPresent()) {
                exchange.put(
                        TargetCommand.answerName(number),
                        answer(TargetCommand.parse(request.get())));
                number++;
            } else {
                Exchange.pause();
            }
        }
    }

    private String answer(TargetCommand errand) {
        watchdog.step(errand.text());
        try {
            errand.run(pools);
            return TargetCommand.DONE;
        } catch (BenchFailure e) {
            return e.getMessage();
        } finally {
            watchdog.step("serve");
        }
    }

    /** Lets {@link #serve} return. Any thread. */
    void stop() {
        stopped = true;
    }
}
