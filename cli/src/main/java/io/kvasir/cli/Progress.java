package io.kvasir.cli;

import java.io.Console;
import java.io.PrintWriter;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Shows how a run is going: one line that is rewritten on a terminal, a line now and then elsewhere.
 * Asks {@code state} for its text on a thread of its own until closed, then shows the last state.
 */
final class Progress implements AutoCloseable {
    private static final long TERMINAL_PERIOD_MS = 200;
    private static final long PLAIN_PERIOD_MS = 5_000;
    private static final String ERASE_REST = "\u001b[K";

    private final ScheduledExecutorService timer =
            Executors.newSingleThreadScheduledExecutor(Thread.ofVirtual().factory());
    private final PrintWriter err;
    private final Supplier<String> state;
    private final boolean terminal;

    Progress(PrintWriter err, Supplier<String> state) {
        this(err, state, onTerminal());
    }

    Progress(PrintWriter err, Supplier<String> state, boolean terminal) {
        this.err = err;
        this.state = state;
        this.terminal = terminal;
        final long periodMs = terminal ? TERMINAL_PERIOD_MS : PLAIN_PERIOD_MS;
        timer.scheduleAtFixedRate(this::show, periodMs, periodMs, TimeUnit.MILLISECONDS);
    }

    /** True when a person looks at the output; the JDK can tell for input and standard output. */
    static boolean onTerminal() {
        final Console console = System.console();
        return console != null && console.isTerminal();
    }

    private void show() {
        if (terminal) {
            err.print("\r" + state.get() + ERASE_REST);
        } else {
            err.println(state.get());
        }
        err.flush();
    }

    @Override
    public void close() {
        timer.close();
        show();
        if (terminal) {
            err.println();
            err.flush();
        }
    }
}
