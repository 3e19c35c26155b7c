package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.URI;
import java.nio.file.Path;
import java.util.Map;

/** OpenTelemetry's own variables count where the gateway's settings are not given. */
class OpenTelemetryVariablesTest {
    private static GatewayConfig of(Map<String, String> environment) {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, "m")
                .environment(environment)
                .build();
    }

    @ParameterizedTest
    @CsvSource({
        "http://c:4318, http://c:4318/v1/traces",
        "http://c:4318/, http://c:4318/v1/traces",
        "https://c/otlp, https://c/otlp/v1/traces",
        "HTTPS://c/otlp//, HTTPS://c/otlp/v1/traces"
    })
    void theUrlOfAllSignalsIsThatOfTracesWithAPath(String base, String traces) {
        assertEquals(
                URI.create(traces),
                of(Map.of("OTEL_EXPORTER_OTLP_ENDPOINT", base)).get(GatewaySettings.OTLP_ENDPOINT));
    }

    @Test
    void theVariableOfTracesIsStrongerAndTheSettingsOwnTheStrongest() {
        final String all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        final String traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        final Map<String, String> both = Map.of(all, "http://a/x", traces, "http://b/own");
        assertEquals(URI.create("http://b/own"), of(both).get(GatewaySettings.OTLP_ENDPOINT));
        assertEquals(traces, of(both).settings().origin(GatewaySettings.OTLP_ENDPOINT));
        final Map<String, String> three =
                Map.of(all, "http://a/x", traces, "http://b/y", "KVASIR_OTLP_ENDPOINT", "http://c");
        assertEquals(
                URI.create("http://c/v1/traces"), of(three).get(GatewaySettings.OTLP_ENDPOINT));
        assertNull(of(Map.of(all, " ")).get(GatewaySettings.OTLP_ENDPOINT), "empty is not set");
    }

    @Test
    void whatIsNoUrlIsRefusedAsItIsWritten() {
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> of(Map.of("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")))
                        .getMessage();
        assertTrue(
                message.startsWith(
                        "OTEL_EXPORTER_OTLP_ENDPOINT: otlp-endpoint=collector:4317 must be"),
                message);
    }

    @Test
    void namesFilesAndHeadersHaveVariables() {
        final GatewayConfig config =
                of(
                        Map.of(
                                "OTEL_SERVICE_NAME", "router",
                                "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/t/ca.pem",
                                "OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem",
                                "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "/t/c.pem",
                                "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/t/k.pem",
                                "OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=secret"));
        assertEquals("router", config.get(GatewaySettings.TRACE_SERVICE_NAME));
        assertEquals(Path.of("/t/ca.pem"), config.get(GatewaySettings.OTLP_TRUST_STORE));
        assertEquals(Path.of("/t/c.pem"), config.get(GatewaySettings.OTLP_CLIENT_CERTIFICATE));
        assertEquals(Path.of("/t/k.pem"), config.get(GatewaySettings.OTLP_CLIENT_KEY));
        assertEquals(new Secret("x-api-key=secret"), config.get(GatewaySettings.OTLP_HEADERS));
        assertFalse(
                config.settings()
                        .printed(GatewaySettings.OTLP_HEADERS)
                        .toString()
                        .contains("secret"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "pod|has 'pod', which is not name=value",
                "a=1,=x|has '=x', which is not name=value",
                "a=50%|has '50%', with a % that two hexadecimal digits do not follow",
            })
    void attributesThatAreNoneAreRefusedAsTheyAreWritten(String attributes, String why) {
        assertEquals(
                "OTEL_RESOURCE_ATTRIBUTES: trace-resource-attributes=" + attributes + " " + why,
                assertThrows(
                                IllegalArgumentException.class,
                                () -> of(Map.of("OTEL_RESOURCE_ATTRIBUTES", attributes)))
                        .getMessage());
    }

    @Test
    void attributesAreWrittenAsTheyAreRead() {
        final String written = "a.b=1%2C2%3D3,c=%C3%BC%20%2B,d=";
        final ResourceAttributes attributes = ResourceAttributes.parse(written);
        assertEquals(Map.of("a.b", "1,2=3", "c", "ü +", "d", ""), attributes.values());
        assertEquals(written, attributes.toString());
    }
}
