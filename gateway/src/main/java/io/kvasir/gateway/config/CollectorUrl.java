package io.kvasir.gateway.config;

import java.net.URI;
import java.util.regex.Pattern;

/** Where traces are sent, as {@code otlp-endpoint} names it. */
final class CollectorUrl {
    private static final String PATH = "/v1/traces";
    private static final Pattern BASE = Pattern.compile("(?i)https?://[^?#]+");
    private static final Pattern END = Pattern.compile("/*+$");

    private CollectorUrl() {}

    /**
     * The URL for traces below one for all that OpenTelemetry sends; what is no such URL stays as
     * it is.
     */
    static String ofBase(String text) {
        return BASE.matcher(text).matches() ? END.matcher(text).replaceFirst(PATH) : text;
    }

    /**
     * Reads a URL; one of a collector gets the path that takes traces.
     *
     * @throws IllegalArgumentException if it is none of HTTP
     */
    static URI parse(String text) {
        final URI uri = URI.create(text);
        final String scheme = uri.getScheme();
        if (uri.getHost() == null
                || !("http".equalsIgnoreCase(scheme) || "https".equalsIgnoreCase(scheme))) {
            throw new IllegalArgumentException(
                    "is no URL of a collector that takes OTLP over HTTP, as http://localhost:4318"
                            + " is");
        }
        return uri.getPath().isEmpty() || uri.getPath().equals("/") ? uri.resolve(PATH) : uri;
    }
}
