package io.kvasir.registry;

import java.net.URI;
import java.util.Set;

/** Addresses of HTTP servers, as settings, options and registrations have them. Stateless. */
public final class HttpAddress {
    private static final Set<String> SCHEMES = Set.of("http", "https");
    private static final int MOST_PORT = 65_535;

    private HttpAddress() {}

    /**
     * Why a server of an address cannot be connected to.
     *
     * @param url scheme, host and port are read
     * @return what follows the address in a message; null if it is an address
     */
    public static String problemOrNull(URI url) {
        if (url.getScheme() == null || !SCHEMES.contains(url.getScheme())) {
            return "must be http://host:port or https://host:port";
        }
        if (url.getHost() == null) {
            return "must be http://host:port or https://host:port"
                    + (String.valueOf(url.getRawAuthority()).indexOf('_') >= 0
                            ? ", with a host whose name has no '_'"
                            : "");
        }
        return portProblemOrNull(url);
    }

    /**
     * Why no server has the port of a URL.
     *
     * @return what follows the address in a message; null if it has one, or none is given
     */
    public static String portProblemOrNull(URI url) {
        return url.getPort() == 0 || url.getPort() > MOST_PORT
                ? "has port " + url.getPort() + ", which is not within 1.." + MOST_PORT
                : null;
    }
}
