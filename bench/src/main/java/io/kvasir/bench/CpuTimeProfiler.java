package io.kvasir.bench;

import com.sun.management.OperatingSystemMXBean;

import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

import java.lang.management.ManagementFactory;
import java.util.Collection;
import java.util.List;

/**
 * Process CPU time per operation, as {@code cpu}: what remains comparable when other programs take
 * the cores. Contains the compiler's and the collector's threads. Use: {@code -prof
 * io.kvasir.bench.CpuTimeProfiler}.
 */
public final class CpuTimeProfiler implements InternalProfiler {
    private final OperatingSystemMXBean process =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private long before;

    @Override
    public String getDescription() {
        return "Process CPU time per operation";
    }

    @Override
    public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
        before = process.getProcessCpuTime();
    }

    @Override
    @SuppressWarnings("rawtypes") // the interface's own signature
    public Collection<? extends Result> afterIteration(
            BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
        final double spent = process.getProcessCpuTime() - before;
        final double perOperation = spent / result.getMetadata().getAllOps();
        return List.of(new ScalarResult("cpu", perOperation, "ns/op", AggregationPolicy.AVG));
    }
}
