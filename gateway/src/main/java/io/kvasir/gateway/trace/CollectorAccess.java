package io.kvasir.gateway.trace;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.registry.Authorities;
import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.Setting;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporterBuilder;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Map;
import java.util.TreeMap;

/** By which files a gateway and its collector of traces know each other. Stateless. */
public final class CollectorAccess {
    private CollectorAccess() {}

    /**
     * Reads the files, where there is a collector; connects to nothing.
     *
     * @throws GatewayException with setting, file and what is wrong
     * @throws IllegalArgumentException where one of two settings that go together is missing
     */
    public static void check(GatewayConfig config) {
        if (config.get(GatewaySettings.OTLP_ENDPOINT) != null) {
            apply(config, OtlpHttpSpanExporter.builder());
        }
    }

    /**
     * Has an exporter go by the files: certificates as they are now, headers as they are when it
     * sends.
     *
     * @throws GatewayException as {@link #check}
     * @throws IllegalArgumentException as {@link #check}
     */
    static void apply(GatewayConfig config, OtlpHttpSpanExporterBuilder exporter) {
        final Path authorities = config.get(GatewaySettings.OTLP_TRUST_STORE);
        if (authorities != null) {
            Authorities.tlsOrNull(GatewaySettings.OTLP_TRUST_STORE.name(), authorities);
            exporter.setTrustedCertificates(read(GatewaySettings.OTLP_TRUST_STORE, authorities));
        }
        final Path certificate = config.get(GatewaySettings.OTLP_CLIENT_CERTIFICATE);
        final Path key = config.get(GatewaySettings.OTLP_CLIENT_KEY);
        if ((certificate == null) != (key == null)) {
            throw new IllegalArgumentException(
                    GatewaySettings.OTLP_CLIENT_CERTIFICATE.name()
                            + " and "
                            + GatewaySettings.OTLP_CLIENT_KEY.name()
                            + " go together");
        }
        if (certificate != null) {
            identify(certificate, key, exporter);
        }
        headers(config, exporter);
    }

    private static void headers(GatewayConfig config, OtlpHttpSpanExporterBuilder exporter) {
        final Secret stated = config.get(GatewaySettings.OTLP_HEADERS);
        final Map<String, String> own =
                stated == null
                        ? Map.of()
                        : CollectorHeaders.ofList(GatewaySettings.OTLP_HEADERS.name(), stated);
        final Path file = config.get(GatewaySettings.OTLP_HEADERS_FILE);
        if (file == null) {
            own.forEach(exporter::addHeader);
            return;
        }
        final FollowedHeaders followed =
                new FollowedHeaders(GatewaySettings.OTLP_HEADERS_FILE.name(), file);
        exporter.setHeaders(
                () -> {
                    final Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
                    all.putAll(own);
                    all.putAll(followed.get());
                    return all;
                });
    }

    private static void identify(Path certificate, Path key, OtlpHttpSpanExporterBuilder exporter) {
        Authorities.tlsOrNull(GatewaySettings.OTLP_CLIENT_CERTIFICATE.name(), certificate);
        final byte[] own = read(GatewaySettings.OTLP_CLIENT_CERTIFICATE, certificate);
        final byte[] secret = read(GatewaySettings.OTLP_CLIENT_KEY, key);
        try {
            exporter.setClientTls(secret, own);
            KeyPairs.check(secret, own);
        } catch (IllegalStateException
                | IllegalArgumentException
                | GeneralSecurityException e) { // says nothing of the key
            throw new GatewayException(
                    GatewaySettings.OTLP_CLIENT_KEY.name()
                            + " "
                            + key
                            + ": it must have the key of "
                            + GatewaySettings.OTLP_CLIENT_CERTIFICATE.name()
                            + " as PEM of PKCS #8 (BEGIN PRIVATE KEY), without a password",
                    e);
        }
    }

    private static byte[] read(Setting<Path> setting, Path file) {
        try {
            return ConfiguredFile.read(file);
        } catch (IOException e) {
            throw new GatewayException(setting.name() + " " + file + ": " + FailureText.of(e), e);
        }
    }
}
