package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

class ThreadUsageTest {
    static List<ThreadUsage> usages() {
        return List.of(ThreadUsage.ofCurrentThread(), new JvmThreadUsage());
    }

    @ParameterizedTest
    @MethodSource("usages")
    void cpuTimeRunsWhileTheThreadWorksAndStandsWhileItSleeps(ThreadUsage usage) {
        final long start = usage.cpuNs();
        final long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(30);
        while (System.nanoTime() < end || usage.cpuNs() == start) {
            Thread.onSpinWait();
        }
        final long worked = usage.cpuNs();
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(30));
        final long slept = usage.cpuNs();
        assertTrue(worked > start);
        assertTrue(slept - worked < TimeUnit.MILLISECONDS.toNanos(15), "slept on the CPU");
    }

    @ParameterizedTest
    @MethodSource("usages")
    void theClocksCostIsSmallAndSwitchesNeverDecrease(ThreadUsage usage) {
        final long cost = usage.clockCostNs();
        assertTrue(cost >= 0 && cost < TimeUnit.MICROSECONDS.toNanos(100), "cost " + cost);
        final long before = usage.involuntarySwitches();
        assertTrue(usage.involuntarySwitches() >= before);
    }

    @ParameterizedTest
    @MethodSource("usages")
    void linuxSeesLostCores(ThreadUsage usage) {
        assertEquals(usage instanceof LinuxThreadUsage, usage.seesPreemption());
    }
}
