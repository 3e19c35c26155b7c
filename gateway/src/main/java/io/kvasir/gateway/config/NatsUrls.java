package io.kvasir.gateway.config;

import io.kvasir.registry.HttpAddress;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** Addresses of NATS servers, as settings and options have them. */
public final class NatsUrls {
    private static final List<String> SCHEMES = List.of("nats", "tls", "opentls", "ws", "wss");
    private static final String SCHEME_END = "://";

    private NatsUrls() {}

    /**
     * Reads addresses with commas between.
     *
     * @return the same, each with its scheme
     * @throws IllegalArgumentException if a scheme is none of NATS, or an address has no host or a
     *     port that no server has
     */
    public static String parse(String text) {
        return Arrays.stream(text.split(",", -1))
                .map(String::strip)
                .filter(url -> !url.isEmpty())
                .map(NatsUrls::withScheme)
                .map(NatsUrls::checked)
                .collect(Collectors.joining(","));
    }

    /** The client reads each as a URL; a port that is not given is its scheme's. */
    private static String checked(String url) {
        final URI uri;
        try {
            uri = new URI(url);
        } catch (URISyntaxException e) {
            throw noServer(e);
        }
        if (uri.getHost() == null) {
            throw noServer(null);
        }
        final String problem = HttpAddress.portProblemOrNull(uri);
        if (problem != null) {
            throw new IllegalArgumentException(problem);
        }
        return url;
    }

    private static IllegalArgumentException noServer(URISyntaxException causeOrNull) {
        return new IllegalArgumentException(
                "is no address of NATS, as nats://host:4222 and nats://[::1]:4222 are",
                causeOrNull);
    }

    private static String withScheme(String url) {
        final int end = url.indexOf(SCHEME_END);
        if (end < 0) {
            return SCHEMES.getFirst() + SCHEME_END + url;
        }
        if (!SCHEMES.contains(url.substring(0, end))) {
            throw new IllegalArgumentException(
                    "is no address of NATS: one of "
                            + SCHEMES.stream()
                                    .map(scheme -> scheme + SCHEME_END)
                                    .collect(Collectors.joining(", "))
                            + " must begin it");
        }
        return url;
    }
}
