package io.kvasir.pipeline.source;

import io.kvasir.pipeline.capture.ZcapReader;
import io.kvasir.pipeline.capture.ZcapRecord;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/** The recordings among the test resources. */
public final class Captures {
    private Captures() {}

    /** All records of a recording, which may be compressed. */
    public static List<ZcapRecord> read(String name) {
        try (ZcapReader reader = ZcapReader.of(open(name), name)) {
            final List<ZcapRecord> records = new ArrayList<>();
            for (ZcapRecord record = reader.next(); record != null; record = reader.next()) {
                records.add(record);
            }
            return records;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The event messages of a recording, live and replayed. */
    public static List<ZcapRecord> messages(String name) {
        return read(name).stream().filter(ZcapRecord::isEventMessage).toList();
    }

    /** The lines of a text, which may be compressed. */
    public static List<String> lines(String name) {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(open(name), StandardCharsets.UTF_8))) {
            return reader.lines().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static InputStream open(String name) throws IOException {
        final InputStream in = Captures.class.getResourceAsStream("/captures/" + name);
        if (in == null) {
            throw new IOException("no such recording: " + name);
        }
        return name.endsWith(".gz") ? new GZIPInputStream(in) : in;
    }
}
