package io.kvasir.opstreams.kvops;

/** Waiting for threads that use memory which is about to be freed. */
final class Threads {
    private Threads() {}

    /** Waits until a thread has ended; an interrupt meanwhile is kept for later. */
    static void joinFully(Thread thread) {
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
