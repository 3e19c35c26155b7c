package io.kvasir.nixl.loopback;

/**
 * Which end it is. A name may come back after a restart; an instance never does.
 *
 * @param name what peers call it, at most {@value #MAX_NAME} bytes of UTF-8
 * @param pid its process
 * @param startMs when the process started, in milliseconds since 1970; 0 if unknown
 * @param instance random, so that two ends of a process differ too
 */
record LoopbackId(String name, long pid, long startMs, long instance) {
    static final int MAX_NAME = 96;

    String inboxFile() {
        return prefix() + ".inbox";
    }

    String memoryFile(int number) {
        return prefix() + "-" + number + ".memory";
    }

    private String prefix() {
        return "kvasir-" + pid + "-" + startMs + "-" + Long.toHexString(instance);
    }

    boolean sameInstance(LoopbackId other) {
        return instance == other.instance && pid == other.pid;
    }

    /** For messages. */
    @Override
    public String toString() {
        return name + " (pid " + pid + ")";
    }
}
