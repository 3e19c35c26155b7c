package io.kvasir.gateway.config;

import java.net.URI;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where decode workers meet a prefill worker of the protocol {@link HandoffProtocol#SGLANG}.
 *
 * @param host name or address; one of IPv6 in brackets
 * @param port 1 to 65,535
 */
public record BootstrapAddress(String host, int port) {
    /** The engines' own default. */
    static final int USUAL_PORT = 8998;

    private static final int MAX_PORT = 65_535;
    private static final Pattern HOST_AND_PORT =
            Pattern.compile("([A-Za-z0-9._-]{1,253}|\\[[0-9A-Fa-f:.%]{2,60}]):(\\d{1,5})");

    /** Checks the values. */
    public BootstrapAddress {
        if (port < 1 || port > MAX_PORT) {
            throw new IllegalArgumentException(
                    "bootstrap=" + host + ":" + port + ": a port is 1 to " + MAX_PORT);
        }
    }

    /**
     * Parses {@code HOST:PORT}.
     *
     * @throws IllegalArgumentException if it is nothing like that
     */
    static BootstrapAddress parse(String text) {
        final Matcher parts = HOST_AND_PORT.matcher(text);
        if (!parts.matches()) {
            throw new IllegalArgumentException(
                    "bootstrap=" + text + " must be HOST:PORT, with [brackets] around IPv6");
        }
        return new BootstrapAddress(parts.group(1), Integer.parseInt(parts.group(2)));
    }

    /** Where the bootstrap server of a worker is by default. */
    static BootstrapAddress beside(URI url) {
        return new BootstrapAddress(url.getHost(), USUAL_PORT);
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
