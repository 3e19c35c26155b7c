package io.kvasir.gateway.config;

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
     * @throws IllegalArgumentException if a scheme is none of NATS
     */
    public static String parse(String text) {
        return Arrays.stream(text.split(",", -1))
                .map(String::strip)
                .filter(url -> !url.isEmpty())
                .map(NatsUrls::withScheme)
                .collect(Collectors.joining(","));
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
