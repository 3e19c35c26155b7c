package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.zip.DataFormatException;

/**
 * What one process measured; travels to its parent as lines of text.
 *
 * @param figures what was measured; figures that mean nothing in a mode are absent
 * @param latencies of the queries without loss of the core, in nanoseconds
 */
public record ForkResult(Map<Figure, Double> figures, Histogram latencies) {
    private static final String CURVE = "latencies";

    /** Copies the figures. */
    public ForkResult {
        figures = Collections.unmodifiableMap(new EnumMap<>(figures));
    }

    /** One {@code name value} a line. */
    List<String> lines() {
        final List<String> lines = new ArrayList<>();
        figures.forEach((figure, value) -> lines.add(figure.name() + " " + value));
        final ByteBuffer bytes = ByteBuffer.allocate(latencies.getNeededByteBufferCapacity());
        final int length = latencies.encodeIntoCompressedByteBuffer(bytes);
        final byte[] used = new byte[length];
        bytes.flip().get(used);
        lines.add(CURVE + " " + Base64.getEncoder().encodeToString(used));
        return lines;
    }

    /**
     * Reads what {@link #lines()} wrote.
     *
     * @throws IllegalArgumentException if a line is not of that form
     */
    static ForkResult parse(List<String> lines) {
        final Map<Figure, Double> figures = new EnumMap<>(Figure.class);
        Histogram latencies = Latencies.histogram();
        for (String line : lines) {
            final int blank = line.indexOf(' ');
            if (blank < 0) {
                throw new IllegalArgumentException("no result line: " + line);
            }
            final String name = line.substring(0, blank);
            final String value = line.substring(blank + 1);
            if (name.equals(CURVE)) {
                latencies = decode(Base64.getDecoder().decode(value));
            } else {
                figures.put(Figure.valueOf(name), Double.valueOf(value));
            }
        }
        return new ForkResult(figures, latencies);
    }

    private static Histogram decode(byte[] compressed) {
        try {
            return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(compressed), 0);
        } catch (DataFormatException e) {
            throw new IllegalArgumentException("no histogram: " + e.getMessage(), e);
        }
    }
}
