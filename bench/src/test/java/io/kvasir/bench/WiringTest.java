package io.kvasir.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

import java.nio.file.Path;
import java.util.Collection;
import java.util.TreeSet;

@Tag("integration") // runs every benchmark
class WiringTest {
    private static final Path TOKENIZER =
            Path.of(
                    System.getProperty("kvasir.root"),
                    "prompt-encoding/src/test/resources/io/kvasir/prompt/tokenizer/llama3-style",
                    "tokenizer.json");

    @Test
    void everyBenchmarkRunsAndTellsTimeAndCpu() throws RunnerException {
        final Collection<RunResult> results =
                new Runner(
                                new OptionsBuilder()
                                        .include("io\\.kvasir\\.bench\\..*")
                                        .param("depthBlocks", "256")
                                        .param("workers", "8")
                                        .param("blocks", "64")
                                        .param("chars", "1024")
                                        .param("file", TOKENIZER.toString())
                                        .forks(0)
                                        .warmupIterations(0)
                                        .measurementIterations(1)
                                        .measurementTime(TimeValue.milliseconds(20))
                                        .addProfiler(CpuTimeProfiler.class)
                                        .shouldFailOnError(true)
                                        .verbosity(VerboseMode.SILENT)
                                        .build())
                        .run();
        final TreeSet<String> names = new TreeSet<>();
        for (RunResult result : results) {
            names.add(result.getParams().getBenchmark().replace("io.kvasir.bench.", ""));
            assertTrue(result.getPrimaryResult().getScore() > 0, result.toString());
            assertTrue(result.getSecondaryResults().get("cpu").getScore() >= 0);
        }
        assertEquals(
                "[ApplyBenchmark.apply, ApplyBenchmark.applyHashMap, ChooseBenchmark.add,"
                        + " ChooseBenchmark.addAndRefresh, ChooseBenchmark.choose,"
                        + " ChooseBenchmark.chooseAfterChange, ChooseBenchmark.scanBoard,"
                        + " DecisionBenchmark.reserve, DecisionBenchmark.reserveUnseen,"
                        + " DecisionBenchmark.select, DecisionBenchmark.selectWithCost,"
                        + " HashBenchmark.local, HashBenchmark.localAndSequence,"
                        + " HashBenchmark.localByCopying, HashBenchmark.localStateless,"
                        + " MatchBenchmark.match, MatchBenchmark.matchHashMap,"
                        + " MixedBenchmark.mixed, PromptMemoBenchmark.anew,"
                        + " PromptMemoBenchmark.hashed, PromptMemoBenchmark.hit,"
                        + " PromptMemoBenchmark.missAndPut,"
                        + " SlotBenchmark.add, SlotBenchmark.addThenFree,"
                        + " SlotBenchmark.free, SlotBenchmark.potentialLoads,"
                        + " transfer.TransferBenchmark.engine,"
                        + " transfer.TransferBenchmark.transport]",
                names.toString());
    }
}
