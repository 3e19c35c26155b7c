package io.kvasir.testsupport;

import java.io.IOException;

/** Signals to processes. One that is stopped appears to hang. */
public final class Signals {
    private Signals() {}

    /**
     * Stops a process where it is.
     *
     * @param process a running one
     * @throws IOException if it cannot be stopped
     */
    public static void stop(Process process) throws IOException, InterruptedException {
        stop(process.toHandle());
    }

    /**
     * Lets a stopped process go on.
     *
     * @param process a stopped one
     * @throws IOException if it is gone
     */
    public static void goOn(Process process) throws IOException, InterruptedException {
        goOn(process.toHandle());
    }

    /**
     * The same with a process that another one has started.
     *
     * @param process a running one
     * @throws IOException if it cannot be stopped
     */
    public static void stop(ProcessHandle process) throws IOException, InterruptedException {
        send("-STOP", process);
    }

    /**
     * The same with a process that another one has started.
     *
     * @param process a stopped one
     * @throws IOException if it is gone
     */
    public static void goOn(ProcessHandle process) throws IOException, InterruptedException {
        send("-CONT", process);
    }

    /**
     * Says to a process that its configuration has changed, as {@code kill -HUP} does.
     *
     * @param process a running one
     * @throws IOException if that fails
     */
    public static void hangUp(Process process) throws IOException, InterruptedException {
        send("-HUP", process.toHandle());
    }

    private static void send(String signal, ProcessHandle process)
            throws IOException, InterruptedException {
        final String pid = Long.toString(process.pid());
        final int exitCode = new ProcessBuilder("kill", signal, pid).start().waitFor();
        if (exitCode != 0) {
            throw new IOException("kill " + signal + " " + pid + " ends with " + exitCode);
        }
    }
}
