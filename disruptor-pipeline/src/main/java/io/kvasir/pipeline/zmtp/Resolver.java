package io.kvasir.pipeline.zmtp;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Resolves host names on a few threads that exist only while there is a name to resolve. Each
 * lookup asks the system again; what the JVM itself remembers of names is set by {@code
 * networkaddress.cache.ttl}.
 */
public final class Resolver implements AutoCloseable {
    /** Takes the addresses of a name. */
    public interface Listener {
        /** On one of the resolver's threads: the addresses, none if the name is unknown. */
        void resolved(List<InetAddress> addresses);
    }

    /** Resolves one name, and waits for the answer. */
    interface Lookup {
        InetAddress[] addresses(String host) throws UnknownHostException;
    }

    private static final int THREADS = 4;
    private static final long KEEP_ALIVE_MS = 5_000;

    private final Lookup lookup;
    private final ThreadPoolExecutor threads;

    /** A resolver that asks the system. */
    public Resolver() {
        this(InetAddress::getAllByName);
    }

    Resolver(Lookup lookup) {
        this.lookup = lookup;
        threads =
                new ThreadPoolExecutor(
                        THREADS,
                        THREADS,
                        KEEP_ALIVE_MS,
                        TimeUnit.MILLISECONDS,
                        new LinkedBlockingQueue<>(),
                        Resolver::newThread);
        threads.allowCoreThreadTimeOut(true);
    }

    private static Thread newThread(Runnable work) {
        final Thread thread = new Thread(work, "kvasir-resolver");
        thread.setDaemon(true);
        return thread;
    }

    /** Resolves a name; does nothing after {@link #close}. */
    void resolve(String host, Listener listener) {
        try {
            threads.execute(() -> listener.resolved(addresses(host)));
        } catch (RejectedExecutionException e) {
            // closed: nothing will connect any more
        }
    }

    private List<InetAddress> addresses(String host) {
        try {
            return List.of(lookup.addresses(host));
        } catch (UnknownHostException | RuntimeException e) {
            return List.of();
        }
    }

    /** Drops what waits; lookups under way end by themselves. */
    @Override
    public void close() {
        threads.shutdownNow();
    }
}
