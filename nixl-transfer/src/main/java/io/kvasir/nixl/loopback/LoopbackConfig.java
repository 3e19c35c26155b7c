package io.kvasir.nixl.loopback;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Limits of a {@link LoopbackTransport}, and where its files lie.
 *
 * @param folder where files of shared memory lie; equal for all ends that shall reach each other,
 *     and a memory file system, since a disk would be written to
 * @param maxPeers connected peers, and as many senders that may have messages here, 1..4096
 * @param maxRegions registered regions, those of one peer, and memories of {@link
 *     LoopbackTransport#pool}, each, 1..2^20
 * @param maxLists prepared lists, 1..2^20
 * @param maxRequests requests that are not yet released, 1..2^20
 * @param inboxBytes messages of one sender that may wait here: a power of two, 32 KiB..64 MiB; a
 *     message takes 8 bytes more than it is long, rounded up to a multiple of 8
 * @param chunkBytes bytes copied at most inside one call, at least 4096
 * @param livenessInterval how often the processes of peers are looked for
 * @param sendTimeout how long a message waits for room in the peer's inbox
 */
public record LoopbackConfig(
        Path folder,
        int maxPeers,
        int maxRegions,
        int maxLists,
        int maxRequests,
        int inboxBytes,
        long chunkBytes,
        Duration livenessInterval,
        Duration sendTimeout) {
    private static final int MAX_PEERS = 4096;
    private static final int MAX_HANDLES = 1 << 20;
    private static final int MIN_INBOX = 32 << 10;
    private static final int MAX_INBOX = 64 << 20;

    /**
     * Checks the limits.
     *
     * @throws IllegalArgumentException naming the value that is outside its limits
     */
    public LoopbackConfig {
        check("maxPeers", maxPeers, 1, MAX_PEERS);
        check("maxRegions", maxRegions, 1, MAX_HANDLES);
        check("maxLists", maxLists, 1, MAX_HANDLES);
        check("maxRequests", maxRequests, 1, MAX_HANDLES);
        check("inboxBytes", inboxBytes, MIN_INBOX, MAX_INBOX);
        check("chunkBytes", chunkBytes, SharedFolder.PAGE, Long.MAX_VALUE);
        check("livenessInterval", livenessInterval);
        check("sendTimeout", sendTimeout);
        if (Integer.bitCount(inboxBytes) != 1) {
            throw new IllegalArgumentException(
                    "inboxBytes must be a power of two: value=" + inboxBytes);
        }
    }

    /**
     * What suits a handful of processes on one machine: 64 peers, 4096 regions, lists and requests
     * each, 64 KiB of messages of each sender, chunks of 4 MiB; peers are looked for every 100 ms
     * and a message waits 100 ms.
     *
     * @return with files in {@code /dev/shm}, or the folder for temporary files where there is none
     */
    public static LoopbackConfig defaults() {
        return new LoopbackConfig(
                SharedFolder.usual(),
                64,
                4096,
                4096,
                4096,
                64 << 10,
                4L << 20,
                Duration.ofMillis(100),
                Duration.ofMillis(100));
    }

    /**
     * The same with another folder.
     *
     * @param other made if it does not exist
     */
    public LoopbackConfig withFolder(Path other) {
        return new LoopbackConfig(
                other,
                maxPeers,
                maxRegions,
                maxLists,
                maxRequests,
                inboxBytes,
                chunkBytes,
                livenessInterval,
                sendTimeout);
    }

    /** At most the longest time that can be measured: 292 years. */
    long livenessNs() {
        return TimeUnit.NANOSECONDS.convert(livenessInterval);
    }

    /** At most the longest time that can be measured: 292 years. */
    long sendTimeoutNs() {
        return TimeUnit.NANOSECONDS.convert(sendTimeout);
    }

    private static void check(String name, Duration value) {
        if (value.isNegative()) {
            throw new IllegalArgumentException(name + "=" + value + ", at least 0");
        }
    }

    private static void check(String name, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    name + " out of range: value=" + value + ", limits=" + min + ".." + max);
        }
    }
}
