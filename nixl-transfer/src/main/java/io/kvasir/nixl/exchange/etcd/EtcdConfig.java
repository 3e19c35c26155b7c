package io.kvasir.nixl.exchange.etcd;

import io.kvasir.registry.LeaseTtl;

import java.net.URI;
import java.time.Duration;
import java.util.List;

/**
 * How an {@link EtcdExchange} reaches etcd.
 *
 * @param endpoints of the cluster's members, such as {@code http://etcd-0:2379}; the next is taken
 *     when one fails
 * @param prefix of all keys; a record's key is the prefix and its name
 * @param ttl how long a record outlives its owner, 1 s..1 h; etcd itself may raise it to a few
 *     election timeouts
 * @param timeout of each request
 */
public record EtcdConfig(List<URI> endpoints, String prefix, Duration ttl, Duration timeout) {
    /** The prefix of keys if nothing else is said. */
    public static final String PREFIX = "/kvasir/cards/";

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public EtcdConfig {
        endpoints = List.copyOf(endpoints);
        if (endpoints.isEmpty() || prefix.isEmpty()) {
            throw new IllegalArgumentException(
                    "endpoints=" + endpoints + ", prefix='" + prefix + "': neither can be empty");
        }
        LeaseTtl.check(ttl);
        if (timeout.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("timeout=" + timeout + ", at least 1 ms");
        }
    }

    /**
     * Records that outlive their owner by 5 s; requests of at most 2 s.
     *
     * @param endpoint of a member
     */
    public static EtcdConfig of(URI endpoint) {
        return new EtcdConfig(
                List.of(endpoint), PREFIX, Duration.ofSeconds(5), Duration.ofSeconds(2));
    }
}
