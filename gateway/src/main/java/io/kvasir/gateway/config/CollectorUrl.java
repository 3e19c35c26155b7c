package io.kvasir.gateway.config;

import io.kvasir.registry.HttpAddress;

import java.net.URI;
import java.util.Locale;
import java.util.regex.Pattern;

/** Where traces are sent, as {@code otlp-endpoint} names it. */
final class CollectorUrl {
    private static final String PATH = "/v1/traces";
    private static final Pattern BASE = Pattern.compile("(?i)https?://[^?#]+");
    private static final Pattern SCHEME = Pattern.compile("(?i)^https?:");
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
        final URI uri =
                URI.create(
                        SCHEME.matcher(text)
                                .replaceFirst(found -> found.group().toLowerCase(Locale.ROOT)));
        final String problem = HttpAddress.problemOrNull(uri);
        if (problem != null) {
            throw new IllegalArgumentException(
                    problem + ": it is for a collector that takes OTLP over HTTP");
        }
        return uri.getPath().isEmpty() || uri.getPath().equals("/") ? uri.resolve(PATH) : uri;
    }
}
