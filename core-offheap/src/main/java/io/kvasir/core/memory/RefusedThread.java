package io.kvasir.core.memory;

/**
 * What the JVM says where it cannot start a thread: an {@link OutOfMemoryError}, though most often
 * threads are limited and memory is free. Stateless.
 */
public final class RefusedThread {
    private static final String OF_JVM = "unable to create native thread";
    private static final String REMEDY =
            "; raise the limit of threads of this user (ulimit -u) or of the container (pids)";

    private RefusedThread() {}

    /**
     * What was refused and what to do.
     *
     * @return null where no thread was refused, but memory
     */
    public static String textOrNull(OutOfMemoryError error) {
        final String message = error.getMessage();
        if (message == null || !message.startsWith(OF_JVM)) {
            return null;
        }
        return message.endsWith(REMEDY) ? message : message + REMEDY;
    }
}
