package io.kvasir.nixl.exchange.zmq;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/**
 * Looks up hosts by name on threads of its own, since a name server may take many seconds to
 * answer; {@value #MOST_AT_ONCE} at a time, later ones wait. Any thread.
 */
final class HostLookups implements AutoCloseable {
    private static final int MOST_AT_ONCE = 16;

    /** Finds the address of a name; may block. */
    @FunctionalInterface
    interface Resolver {
        InetAddress resolve(String name) throws UnknownHostException;
    }

    private final Resolver resolver;
    private final ExecutorService threads =
            Executors.newFixedThreadPool(
                    MOST_AT_ONCE, Thread.ofPlatform().daemon().name("kvasir-lookup-", 0).factory());

    HostLookups(Resolver resolver) {
        this.resolver = resolver;
    }

    /** The first IPv4 address of a name. */
    static InetAddress ipv4(String name) throws UnknownHostException {
        return Stream.of(InetAddress.getAllByName(name))
                .filter(Inet4Address.class::isInstance)
                .findFirst()
                .orElseThrow(() -> new UnknownHostException(name + " has no IPv4 address"));
    }

    /** Begins to look a host up; an address needs no lookup and is there at once. */
    Future<InetAddress> find(String host) {
        try {
            return CompletableFuture.completedFuture(InetAddress.ofLiteral(host));
        } catch (IllegalArgumentException e) {
            return threads.submit(() -> resolver.resolve(host)); // it is a name
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
