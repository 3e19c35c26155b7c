package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.InetAddressSet;

import java.net.InetSocketAddress;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Which callers may steer routing by headers and see what was decided: what is predicted as cached
 * says what others have asked before. By token, or by the address that the connection comes from;
 * forwarding headers count for nothing. Thread-safe.
 */
final class TrustedCallers {
    private static final Pattern MAPPED =
            Pattern.compile(
                    "\\[?::ffff:([0-9]+(?:\\.[0-9]+){3})]?(?:/([0-9]{1,3}))?",
                    Pattern.CASE_INSENSITIVE);

    private static final int MAPPED_BITS = 96;

    private final BearerTokens tokens;
    private final InetAddressSet networks = new InetAddressSet();

    /**
     * @throws GatewayException if the file of tokens cannot be read
     */
    TrustedCallers(GatewayConfig config) {
        tokens =
                new BearerTokens(
                        config.get(GatewaySettings.TRUSTED_TOKENS),
                        config.get(GatewaySettings.TRUSTED_TOKEN_FILE));
        config.get(GatewaySettings.TRUSTED_NETWORKS).forEach(range -> networks.add(plain(range)));
    }

    /**
     * Checks a range of addresses.
     *
     * @param text an address, a range {@code a-b} or CIDR
     * @return the same
     * @throws IllegalArgumentException if it is none
     */
    static String network(String text) {
        if (!text.matches("[0-9A-Fa-f:.\\[\\]/-]+")) { // a name would be looked up
            throw new IllegalArgumentException("is no address range, as 10.0.0.0/8 is");
        }
        var _ = new InetAddressSet().add(plain(text));
        return text;
    }

    /**
     * An IPv4 address that is written as one of IPv6, as {@code ::ffff:10.0.0.1}, or a range of
     * such: connections that come from it show it as one of IPv4.
     */
    private static String plain(String text) {
        final Matcher mapped = MAPPED.matcher(text);
        if (!mapped.matches()) {
            return text;
        }
        final String given = mapped.group(2);
        if (given == null) {
            return mapped.group(1);
        }
        final int bits = Integer.parseInt(given) - MAPPED_BITS;
        if (bits < 0) {
            throw new IllegalArgumentException(
                    "is more than the IPv4 addresses; write ::/0 for all");
        }
        return mapped.group(1) + "/" + bits;
    }

    void reload() {
        tokens.reload();
    }

    boolean trusts(Request request) {
        return hasToken(request)
                || (request.getConnectionMetaData().getRemoteSocketAddress()
                                instanceof InetSocketAddress from
                        && from.getAddress() != null
                        && !networks.isEmpty()
                        && networks.test(from.getAddress()));
    }

    /** Whether a caller has presented a token of the gateway's, which is no business of workers. */
    boolean hasToken(Request request) {
        return tokens.accept(request.getHeaders().get(HttpHeader.AUTHORIZATION));
    }
}
