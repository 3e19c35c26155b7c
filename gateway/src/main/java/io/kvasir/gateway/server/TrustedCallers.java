package io.kvasir.gateway.server;

import io.kvasir.gateway.config.AddressRange;
import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.InetAddressSet;

import java.net.InetSocketAddress;
import java.util.stream.Stream;

/**
 * Which callers may steer routing by headers and see what was decided: what is predicted as cached
 * says what others have asked before. By token, or by the address that the connection comes from;
 * forwarding headers count for nothing. Thread-safe.
 */
public final class TrustedCallers {
    private final BearerTokens tokens;
    private final InetAddressSet networks = new InetAddressSet();

    /**
     * @throws GatewayException if the file of tokens cannot be read
     */
    public TrustedCallers(GatewayConfig config) {
        tokens =
                new BearerTokens(
                        GatewaySettings.TRUSTED_TOKENS.name(),
                        config.get(GatewaySettings.TRUSTED_TOKENS),
                        config.get(GatewaySettings.TRUSTED_TOKEN_FILE));
        config.get(GatewaySettings.TRUSTED_NETWORKS)
                .forEach(range -> networks.add(AddressRange.plain(range)));
    }

    /** Reads the file of tokens again; if that fails, the tokens stay. */
    public void reload() {
        tokens.reload();
    }

    /** Whether a request comes from a trusted caller, by token or by address. */
    public boolean trusts(Request request) {
        return tokens.accept(request.getHeaders().get(HttpHeader.AUTHORIZATION))
                || (request.getConnectionMetaData().getRemoteSocketAddress()
                                instanceof InetSocketAddress from
                        && from.getAddress() != null
                        && !networks.isEmpty()
                        && networks.test(from.getAddress()));
    }

    /**
     * Whether a caller has sent a token of the gateway's, which is no business of workers; also as
     * one of a list, by which it is not trusted.
     */
    public boolean hasToken(Request request) {
        final String value = request.getHeaders().get(HttpHeader.AUTHORIZATION);
        return value != null
                && (tokens.accept(value)
                        || Stream.of(value.split(",", -1))
                                .map(String::strip)
                                .anyMatch(tokens::accept));
    }
}
