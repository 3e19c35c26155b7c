package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

class HostProcessTest {
    @Test
    void aProcessIsKnownByItsNumberAndStart() {
        final long pid = HostProcess.OWN_PID;

        assertTrue(HostProcess.lives(pid, HostProcess.OWN_START));
        assertTrue(HostProcess.lives(pid, 0), "where the start is not known");
        assertFalse(HostProcess.lives(pid, HostProcess.OWN_START - 60_000));
        assertFalse(HostProcess.lives(999_999_999, 0));
        assertFalse(HostProcess.isZombie(pid));
    }

    @Test
    void aProcessThatEndedAndIsNotAwaitedDoesNotLive() throws IOException, InterruptedException {
        assumeTrue(Files.exists(Path.of("/proc/self/stat")), "skipped: no /proc");
        final Process parent =
                new ProcessBuilder("sh", "-c", "sleep 0 & echo $!; exec sleep 60").start();
        try {
            final String line = parent.inputReader(StandardCharsets.US_ASCII).readLine();
            final long child = Long.parseLong(line);
            final long deadline = System.nanoTime() + Loopbacks.DEADLINE_NS;
            while (!HostProcess.isZombie(child)) {
                assertTrue(System.nanoTime() < deadline, "the child does not end");
                LockSupport.parkNanos(1_000_000);
            }
            assertFalse(HostProcess.lives(child, 0));
        } finally {
            parent.destroyForcibly().waitFor();
        }
    }
}
