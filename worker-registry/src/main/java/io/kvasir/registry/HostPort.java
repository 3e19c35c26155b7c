package io.kvasir.registry;

/** A host with a port as in URLs and addresses of sockets. Stateless. */
public final class HostPort {
    private HostPort() {}

    /**
     * {@code host:port}.
     *
     * @param host name or address; one of IPv6 with or without brackets
     * @return with an address of IPv6 in brackets
     */
    public static String of(String host, int port) {
        return of(host, Integer.toString(port));
    }

    /**
     * The same for ZMQ to bind.
     *
     * @param port 0 for any free one, which ZMQ writes as {@code *}
     */
    public static String toBind(String host, int port) {
        return of(host, port == 0 ? "*" : Integer.toString(port));
    }

    /** The same of a port that is written already. */
    public static String of(String host, String port) {
        return (isV6(host) && !host.startsWith("[") ? "[" + host + "]" : host) + ":" + port;
    }

    /** Whether it is an address of IPv6, with or without brackets: names have no colon. */
    public static boolean isV6(String host) {
        return host.indexOf(':') >= 0;
    }
}
