package io.kvasir.bench.gateway;

import org.HdrHistogram.Histogram;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What it costs the gateway that a request has two legs: CPU time per request and the time that it
 * adds, beside a request that one worker does all of. Engines answer at once, so all of a time but
 * the sockets' part is the gateway's. Gateways of both kinds run in turn, in processes of their
 * own.
 */
public final class SplitCost {
    private static final int PER_SECOND = 300;
    private static final int SECONDS = 10;
    private static final int WARM_UP_PER_SECOND = 600;
    private static final int WARM_UP_SECONDS = 15;
    private static final int DEFAULT_TURNS = 3;

    /** What becomes of a request. */
    private enum Kind {
        WHOLE,
        SPLIT
    }

    /** Of one process. */
    private record Sample(double cpuUs, double p50Us, double p99Us) {}

    private SplitCost() {}

    /**
     * Measures and prints a table.
     *
     * @param args how often each kind is run, {@code -} for three times; then the words that start
     *     the command line
     */
    public static void main(String[] args) throws Exception {
        final int turns = args[0].equals("-") ? DEFAULT_TURNS : Integer.parseInt(args[0]);
        final List<String> kvasir = Arrays.asList(args).subList(1, args.length);
        final Map<Kind, List<Sample>> whole = new EnumMap<>(Kind.class);
        final Map<Kind, List<Sample>> streams = new EnumMap<>(Kind.class);
        for (int turn = 0; turn < turns; turn++) {
            for (Kind kind : Kind.values()) {
                measure(
                        kvasir,
                        kind,
                        whole.computeIfAbsent(kind, _ -> new ArrayList<>()),
                        streams.computeIfAbsent(kind, _ -> new ArrayList<>()));
            }
        }
        System.out.printf(
                "%d requests/s, prompts of 512 ids, answers of %d tokens; median (least to most) of"
                        + " %d processes%n",
                PER_SECOND, StubEngine.TOKENS, turns);
        print("answers", whole);
        print("streams", streams);
    }

    private static void measure(
            List<String> kvasir, Kind kind, List<Sample> whole, List<Sample> streams)
            throws IOException, InterruptedException {
        try (StubEngine first = new StubEngine();
                StubEngine second = new StubEngine();
                GatewayProcess gateway =
                        new GatewayProcess(
                                kvasir,
                                kind == Kind.WHOLE
                                        ? List.of(first.url(), second.url())
                                        : List.of(
                                                first.url() + ",role=prefill",
                                                second.url() + ",role=decode"))) {
            final OpenLoop asWhole = new OpenLoop(gateway.port(), false);
            final OpenLoop asStreams = new OpenLoop(gateway.port(), true);
            asWhole.ask(WARM_UP_PER_SECOND, WARM_UP_SECONDS);
            asStreams.ask(WARM_UP_PER_SECOND, WARM_UP_SECONDS);
            whole.add(sample(gateway, asWhole));
            streams.add(sample(gateway, asStreams));
        }
    }

    private static Sample sample(GatewayProcess gateway, OpenLoop clients)
            throws InterruptedException {
        final long before = gateway.cpu().toNanos();
        final Histogram times = clients.ask(PER_SECOND, SECONDS);
        final double cpuNs = gateway.cpu().toNanos() - before;
        return new Sample(
                cpuNs / 1e3 / times.getTotalCount(),
                times.getValueAtPercentile(50) / 1e3,
                times.getValueAtPercentile(99) / 1e3);
    }

    private static void print(String title, Map<Kind, List<Sample>> samples) {
        samples.forEach((kind, all) -> print(title, kind, all));
    }

    private static void print(String title, Kind kind, List<Sample> samples) {
        System.out.printf(
                Locale.ROOT,
                "  %s, %-5s  CPU %s µs a request, p50 %s µs, p99 %s µs%n",
                title,
                kind.name().toLowerCase(Locale.ROOT),
                spread(samples.stream().mapToDouble(Sample::cpuUs).toArray()),
                spread(samples.stream().mapToDouble(Sample::p50Us).toArray()),
                spread(samples.stream().mapToDouble(Sample::p99Us).toArray()));
    }

    private static String spread(double[] values) {
        Arrays.sort(values);
        return String.format(
                Locale.ROOT,
                "%.0f (%.0f to %.0f)",
                values[values.length / 2],
                values[0],
                values[values.length - 1]);
    }
}
