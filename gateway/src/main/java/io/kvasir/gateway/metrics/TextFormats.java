package io.kvasir.gateway.metrics;

import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * Writes metrics as text, by what their reader accepts. The library's own choice is not asked: it
 * takes protobuf wherever that is accepted, as by a Prometheus that reads native histograms, and
 * has no writer of it. Thread-safe.
 */
final class TextFormats {
    private static final int FIRST_BYTES = 16_384;

    private final ExpositionFormats formats = ExpositionFormats.init();

    /**
     * All metrics of a registry.
     *
     * @param accept the reader's Accept header, null for none
     * @return OpenMetrics where that is accepted, else Prometheus' text
     * @throws IOException never, as it is written to memory
     */
    GatewayMetrics.Page page(PrometheusRegistry registry, String accept) throws IOException {
        final ExpositionFormatWriter open = formats.getOpenMetricsTextFormatWriter();
        final ExpositionFormatWriter writer =
                open.accepts(accept) ? open : formats.getPrometheusTextFormatWriter();
        final ByteArrayOutputStream out = new ByteArrayOutputStream(FIRST_BYTES);
        writer.write(out, registry.scrape(), EscapingScheme.UNDERSCORE_ESCAPING);
        return new GatewayMetrics.Page(
                writer.getContentType(), out.toString(StandardCharsets.UTF_8));
    }
}
