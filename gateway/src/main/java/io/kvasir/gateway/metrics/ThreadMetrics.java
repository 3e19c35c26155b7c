package io.kvasir.gateway.metrics;

import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * Counts of the threads of this process, by the names that dashboards know. Not by the library's
 * own class: it looks for deadlocks at each reading of the page, for which the virtual machine
 * stops all threads, twice.
 */
final class ThreadMetrics {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private ThreadMetrics() {}

    static void register(PrometheusRegistry registry) {
        GaugeWithCallback.builder()
                .name("jvm_threads_current")
                .help("Threads that run now")
                .callback(out -> out.call(THREADS.getThreadCount()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("jvm_threads_daemon")
                .help("Threads that run now and keep no process from ending")
                .callback(out -> out.call(THREADS.getDaemonThreadCount()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("jvm_threads_peak")
                .help("Most threads that ran at once")
                .callback(out -> out.call(THREADS.getPeakThreadCount()))
                .register(registry);
        CounterWithCallback.builder()
                .name("jvm_threads_started_total")
                .help("Threads that were started")
                .callback(out -> out.call((double) THREADS.getTotalStartedThreadCount()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("jvm_threads_state")
                .help("Threads by state")
                .labelNames("state")
                .callback(ThreadMetrics::states)
                .register(registry);
    }

    private static void states(GaugeWithCallback.Callback out) {
        final var counts =
                Arrays.stream(THREADS.getThreadInfo(THREADS.getAllThreadIds()))
                        .filter(Objects::nonNull) // has ended since
                        .collect(
                                Collectors.groupingBy(
                                        ThreadInfo::getThreadState, Collectors.counting()));
        for (Thread.State state : Thread.State.values()) {
            out.call(counts.getOrDefault(state, 0L), state.name());
        }
    }
}
