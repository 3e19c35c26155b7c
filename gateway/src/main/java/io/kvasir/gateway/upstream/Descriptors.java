package io.kvasir.gateway.upstream;

import com.sun.management.UnixOperatingSystemMXBean;

import io.kvasir.gateway.config.WorkerConfig;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The file descriptors of this process: how many there may be, and what is said of a lack. */
public final class Descriptors {
    private static final Logger LOG = LoggerFactory.getLogger(Descriptors.class);
    private static final long LOG_INTERVAL_NS = 60_000_000_000L;
    private static final AtomicLong LOGGED_NS = new AtomicLong(System.nanoTime() - LOG_INTERVAL_NS);

    /** What a system says that has none left, of the process or of all. */
    private static final String LACK = "Too many open files";

    /** For the admin port, replays of events, files. */
    private static final long RESERVED = 64;

    /** A worker's probe and the poll of its load may each keep a connection. */
    private static final long KEPT_OF_WORKER = 2;

    /** A request has a connection of its client and one to its worker. */
    private static final long OF_REQUEST = 2;

    private static final long UNKNOWN_LIMIT = 1 << 17;
    private static final int FEWEST_CONNECTIONS = 16;
    private static final int MOST_CONNECTIONS = 65_536;

    private Descriptors() {}

    /** Whether a failure says that there is none left. The JDK has no type of its own for it. */
    public static boolean isLack(Throwable failure) {
        return failure instanceof IOException
                && failure.getMessage() != null
                && failure.getMessage().startsWith(LACK);
    }

    /** Whether there is none left at this moment. */
    static boolean areExhausted() {
        try (SocketChannel _ = SocketChannel.open()) {
            return false;
        } catch (IOException e) {
            return isLack(e);
        }
    }

    /** So many are free for clients, their requests and workers; may be less than 0. */
    public static long free() {
        return limit() - open() - RESERVED;
    }

    /** So many a worker takes without a request: those it keeps, and one for each event source. */
    public static long of(WorkerConfig worker) {
        return KEPT_OF_WORKER + (worker.events() == null ? 0 : worker.dataParallelSize());
    }

    /**
     * So many connections of clients leave a descriptor for the worker of each.
     *
     * @param free what workers leave
     */
    public static int affordableConnections(long free) {
        return Math.clamp(free / OF_REQUEST, FEWEST_CONNECTIONS, MOST_CONNECTIONS);
    }

    /** Says it where so many requests at once, and these workers, need more than there may be. */
    public static void checkFor(int requests, List<WorkerConfig> workers) {
        final long ofWorkers = workers.stream().mapToLong(Descriptors::of).sum();
        final long needed = open() + RESERVED + ofWorkers + OF_REQUEST * requests;
        if (limit() < needed) {
            LOG.warn(
                    "file descriptors: the limit is {}, max-active-requests={} and {} workers may"
                            + " need {}; raise ulimit -n, or lower max-active-requests",
                    limit(),
                    requests,
                    workers.size(),
                    needed);
        }
    }

    /** Says once a minute that there was none left for a connection to a worker. */
    public static void reportLack() {
        final long nowNs = System.nanoTime();
        final long last = LOGGED_NS.get();
        if (nowNs - last >= LOG_INTERVAL_NS && LOGGED_NS.compareAndSet(last, nowNs)) {
            LOG.warn(
                    "no file descriptor is left for connections to workers: the limit is {}; raise"
                            + " ulimit -n, or lower max-connections and max-active-requests",
                    limit());
        }
    }

    /** How many there may be. */
    public static long limit() {
        return ManagementFactory.getOperatingSystemMXBean()
                        instanceof UnixOperatingSystemMXBean unix
                ? unix.getMaxFileDescriptorCount()
                : UNKNOWN_LIMIT;
    }

    private static long open() {
        return ManagementFactory.getOperatingSystemMXBean()
                        instanceof UnixOperatingSystemMXBean unix
                ? unix.getOpenFileDescriptorCount()
                : 0;
    }
}
