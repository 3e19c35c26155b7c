package io.kvasir.nixl.loopback;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/**
 * Processes of this machine, distinguished from later ones with the same number by their start
 * times.
 */
final class HostProcess {
    static final long OWN_PID = ProcessHandle.current().pid();
    static final long OWN_START = startMs(ProcessHandle.current());

    /** The system's start time, and with it each process's, moves when its clock is set. */
    private static final long CLOCK_STEP_MS = 10_000;

    private HostProcess() {}

    /** When a process started, in milliseconds since 1970; 0 if that cannot be known. */
    private static long startMs(ProcessHandle process) {
        return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
    }

    /** Whether a process lives that has this number and started then. */
    static boolean lives(long pid, long startMs) {
        return find(pid, startMs) != null;
    }

    /**
     * Finds a process.
     *
     * @return null if none with this number lives, or it started at another time
     */
    static ProcessHandle find(long pid, long startMs) {
        final ProcessHandle process = ProcessHandle.of(pid).orElse(null);
        if (process == null || !process.isAlive() || isZombie(pid)) {
            return null;
        }
        final long started = startMs(process);
        final boolean same =
                started == 0 || startMs == 0 || Math.abs(started - startMs) <= CLOCK_STEP_MS;
        return same ? process : null;
    }

    /**
     * Whether a process has ended, and only its parent has not asked for its exit status yet; it
     * keeps its number until then, which in a container without an init process is for ever.
     * Allocates.
     */
    static boolean isZombie(long pid) {
        try {
            final String stat = Files.readString(Path.of("/proc/" + pid + "/stat"), ISO_8859_1);
            final int name = stat.lastIndexOf(')'); // a name may hold anything, this too
            return name >= 0 && stat.startsWith(" Z", name + 1);
        } catch (IOException e) {
            return false; // no such file system, or the process is gone for good
        }
    }
}
