package io.kvasir.testsupport;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A real OpenTelemetry collector for tests: the program that {@code OTELCOL} names, else {@code
 * otelcol} on the path. It takes OTLP over HTTP and writes what it gets into a file; it needs the
 * {@code otlp} receiver, the {@code file} exporter and the {@code file} provider.
 */
public final class OtelCollector extends ServerProcess {
    private static final int TIMEOUT_MS = 2_000;

    private final Path program;
    private final int port = FreePorts.run(1);

    private OtelCollector(Path program, Path folder) {
        super(folder);
        this.program = program;
    }

    /**
     * Finds the program.
     *
     * @return where it is
     * @throws IOException saying that there is none
     */
    public static Path program() throws IOException {
        return BuildFolder.program("OTELCOL", "otelcol")
                .orElseThrow(
                        () -> new IOException("OTELCOL is not set, and no otelcol is on the path"));
    }

    /**
     * Makes a collector that is not yet started.
     *
     * @param program from {@link #program}
     * @param folder an empty one
     */
    public static OtelCollector in(Path program, Path folder) {
        return new OtelCollector(program, folder);
    }

    @Override
    List<String> command() throws IOException {
        final Path config = folder().resolve("collector.yaml");
        Files.writeString(
                config,
                """
                receivers:
                  otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}}}
                exporters:
                  file: {path: '%s', append: true, flush_interval: 50ms}
                service:
                  telemetry: {metrics: {level: none}, logs: {level: warn}}
                  pipelines:
                    traces: {receivers: [otlp], exporters: [file]}
                """
                        .formatted(port, written()));
        return List.of(program.toString(), "--config", config.toString());
    }

    @Override
    boolean answers() {
        try {
            final HttpURLConnection connection =
                    (HttpURLConnection) endpoint().toURL().openConnection();
            connection.setConnectTimeout(TIMEOUT_MS);
            connection.setReadTimeout(TIMEOUT_MS);
            return connection.getResponseCode() > 0; // of a GET: not allowed
        } catch (IOException e) {
            return false;
        }
    }

    /**
     * Where it takes traces.
     *
     * @return the same after another start
     */
    public URI endpoint() {
        return URI.create("http://127.0.0.1:" + port + "/v1/traces");
    }

    private Path written() {
        return folder().resolve("traces.jsonl");
    }

    /**
     * What it has written so far.
     *
     * @return batches in OTLP's JSON, one each, whole ones only; those of earlier starts first
     */
    public List<String> batches() throws IOException {
        if (!Files.exists(written())) {
            return List.of();
        }
        final String all = Files.readString(written());
        return all.substring(0, all.lastIndexOf('\n') + 1).lines().toList();
    }
}
