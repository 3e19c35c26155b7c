package io.kvasir.nixl.transfer;

import java.time.Instant;

/** Processes of this machine, told from later ones with the same number by when they started. */
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
        if (process == null || !process.isAlive()) {
            return null;
        }
        final long started = startMs(process);
        final boolean same =
                started == 0 || startMs == 0 || Math.abs(started - startMs) <= CLOCK_STEP_MS;
        return same ? process : null;
    }
}
