package io.kvasir.opstreams.kvops;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** The JVM's answer, where the operating system cannot be asked. */
final class JvmThreadUsage extends ThreadUsage {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    @Override
    public long cpuNs() {
        return THREADS.getCurrentThreadCpuTime();
    }

    @Override
    public long involuntarySwitches() {
        return 0;
    }

    @Override
    public boolean seesPreemption() {
        return false;
    }
}
