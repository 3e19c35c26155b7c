package io.kvasir.bench.gpu;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.function.UnaryOperator;

/**
 * What the command line asks for.
 *
 * @param mode which measurement, or which end of one
 * @param kinds kinds of transfers, in order; empty for {@link Mode#COPY}
 * @param exchange folder where the two ends meet; null where there is one process
 * @param poolBytes most bytes of one transfer
 * @param limitSeconds what ends this process from outside; all is done well before
 */
record GpuBenchOptions(
        Mode mode, List<TransferKind> kinds, Path exchange, long poolBytes, int limitSeconds) {
    static final String LIMIT_VARIABLE = "KVASIR_GPU_LIMIT_S";

    private static final String USAGE =
            "; usage: copy | agent --kinds LIST | (target | initiator) --exchange DIR --kinds LIST;"
                    + " with [--bytes N] [--seconds N]";
    private static final long DEFAULT_POOL_BYTES = 256L << 20;
    private static final long LEAST_POOL_BYTES = 4L << 10;
    private static final long MOST_POOL_BYTES = 4L << 30;
    private static final int DEFAULT_LIMIT_SECONDS = 100;
    private static final int LEAST_LIMIT_SECONDS = 5;
    private static final int MOST_LIMIT_SECONDS = 3600;

    /** The processes of the bench. */
    enum Mode {
        COPY,
        AGENT,
        TARGET,
        INITIATOR;

        boolean hasPeer() {
            return this == TARGET || this == INITIATOR;
        }
    }

    /**
     * Reads the command line.
     *
     * @throws IllegalArgumentException if it is wrong, with what is right
     */
    static GpuBenchOptions parse(List<String> arguments, UnaryOperator<String> environment) {
        if (arguments.isEmpty()) {
            throw wrong("no measurement named");
        }
        final Mode mode = mode(arguments.getFirst());
        List<TransferKind> kinds = List.of();
        Path exchange = null;
        long poolBytes = DEFAULT_POOL_BYTES;
        final String limit = environment.apply(LIMIT_VARIABLE);
        int seconds =
                limit == null || limit.isBlank()
                        ? DEFAULT_LIMIT_SECONDS
                        : (int)
                                number(
                                        LIMIT_VARIABLE,
                                        limit,
                                        LEAST_LIMIT_SECONDS,
                                        MOST_LIMIT_SECONDS);
        for (int i = 1; i < arguments.size(); i += 2) {
            final String name = arguments.get(i);
            if (i + 1 == arguments.size()) {
                throw wrong(name + " has no value");
            }
            final String value = arguments.get(i + 1);
            switch (name) {
                case "--kinds" -> kinds = TransferKind.parse(value);
                case "--exchange" -> exchange = Path.of(value);
                case "--bytes" ->
                        poolBytes = number(name, value, LEAST_POOL_BYTES, MOST_POOL_BYTES);
                case "--seconds" ->
                        seconds =
                                (int) number(name, value, LEAST_LIMIT_SECONDS, MOST_LIMIT_SECONDS);
                default -> throw wrong("unknown option " + name);
            }
        }
        if ((mode == Mode.COPY) != kinds.isEmpty()) {
            throw wrong(mode == Mode.COPY ? "copy takes no --kinds" : "--kinds is missing");
        }
        if (mode.hasPeer() != (exchange != null)) {
            throw wrong(
                    mode.hasPeer() ? "--exchange is missing" : "--exchange is for two processes");
        }
        if (exchange != null && !Files.isDirectory(exchange)) {
            throw wrong("--exchange " + exchange + " is no folder");
        }
        return new GpuBenchOptions(mode, kinds, exchange, poolBytes, seconds);
    }

    private static Mode mode(String name) {
        for (Mode mode : Mode.values()) {
            if (mode.name().toLowerCase(Locale.ROOT).equals(name)) {
                return mode;
            }
        }
        throw wrong("unknown measurement " + name);
    }

    private static long number(String name, String value, long least, long most) {
        long number;
        try {
            number = Long.parseLong(value);
        } catch (NumberFormatException e) {
            number = -1;
        }
        if (number < least || number > most) {
            throw wrong("%s=%s, must be %d to %d".formatted(name, value, least, most));
        }
        return number;
    }

    private static IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException(what + USAGE);
    }
}
