package io.kvasir.testsupport;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.PreInterruptCallback;
import org.junit.jupiter.api.extension.PreInterruptContext;

import java.util.List;

/**
 * Ends the processes that this JVM has started when a test has reached JUnit's timeout: a thread
 * that reads what a process writes sees no interrupt, and the test would go on for ever. The
 * threads are printed by JUnit itself. JUnit finds this class by its service file.
 */
public final class HungTest implements PreInterruptCallback {
    /** Made by JUnit. */
    public HungTest() {}

    @Override
    public void beforeThreadInterrupt(PreInterruptContext context, ExtensionContext extension) {
        final List<ProcessHandle> started = ProcessHandle.current().descendants().toList();
        System.err.println(
                extension.getUniqueId()
                        + " hangs; processes that are ended: "
                        + started.stream().map(HungTest::describe).toList());
        started.forEach(ProcessHandle::destroyForcibly);
    }

    private static String describe(ProcessHandle process) {
        return process.pid() + " " + process.info().commandLine().orElse("");
    }
}
