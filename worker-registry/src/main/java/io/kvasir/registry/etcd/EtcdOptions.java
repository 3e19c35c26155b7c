package io.kvasir.registry.etcd;

import io.kvasir.registry.HttpAddress;
import io.kvasir.registry.LeaseTtl;

import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

import javax.net.ssl.SSLContext;

/**
 * How etcd is reached.
 *
 * @param endpoints of the cluster's members, such as {@code http://etcd-0:2379}; the next is taken
 *     when one fails
 * @param ttl of leases, 1 s..1 h; etcd itself may raise it to a few election timeouts
 * @param timeout of each request; more than a day is a day
 * @param login null where etcd asks for none
 * @param tls for https endpoints; null for the JVM's own
 */
public record EtcdOptions(
        List<URI> endpoints, Duration ttl, Duration timeout, Login login, SSLContext tls) {
    /** No call of the JDK can overflow with it. */
    private static final Duration LONGEST = Duration.ofDays(1);

    /**
     * A user of etcd's own.
     *
     * @param user its name
     * @param password asked for at each login, by any thread; hidden in the text form
     */
    public record Login(String user, Supplier<String> password) {
        /** With a password that stays. */
        public Login(String user, String password) {
            this(user, () -> password);
        }

        @Override
        public String toString() {
            return user + ":***";
        }
    }

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public EtcdOptions {
        endpoints = List.copyOf(endpoints);
        if (endpoints.isEmpty()) {
            throw new IllegalArgumentException("no endpoint of etcd is named");
        }
        endpoints.forEach(endpoint -> check(endpoint, "a login"));
        LeaseTtl.check(ttl);
        if (timeout.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("timeout=" + timeout + ", at least 1 ms");
        }
        timeout = timeout.compareTo(LONGEST) < 0 ? timeout : LONGEST;
    }

    /**
     * Checks the address of a member. A user in it goes nowhere: neither to etcd nor into a
     * message.
     *
     * @param login names of what a user and its password are given by, for the message
     * @throws IllegalArgumentException if it cannot be
     */
    public static void check(URI endpoint, String login) {
        final String authority = String.valueOf(endpoint.getRawAuthority());
        final int user = authority.lastIndexOf('@') + 1;
        final String named = endpoint.getScheme() + "://" + authority.substring(user);
        if (user > 0) {
            throw new IllegalArgumentException(
                    "etcd endpoint "
                            + named
                            + " has a user before its host, which is not used: user and password of"
                            + " etcd are given by "
                            + login);
        }
        final String problem = HttpAddress.problemOrNull(endpoint);
        if (problem != null) {
            throw new IllegalArgumentException("etcd endpoint " + endpoint + " " + problem);
        }
    }

    /** Without login, certificates by the JVM's authorities. */
    public static EtcdOptions of(List<URI> endpoints, Duration ttl, Duration timeout) {
        return new EtcdOptions(endpoints, ttl, timeout, null, null);
    }
}
