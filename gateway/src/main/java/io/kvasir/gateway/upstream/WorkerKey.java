package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.SecretFile;

import java.nio.file.Path;

/** The gateway's own key towards workers, where one is set. Thread-safe. */
public final class WorkerKey {
    private final Secret givenOrNull;
    private final Path fileOrNull;
    private volatile String header;

    /**
     * Reads the file, whose first token counts.
     *
     * @throws GatewayException if it cannot be read, has none, or one that no header can carry
     */
    public WorkerKey(GatewayConfig config) {
        givenOrNull = config.get(GatewaySettings.WORKER_KEY);
        fileOrNull = config.get(GatewaySettings.WORKER_KEY_FILE);
        reload();
    }

    /**
     * Reads the file again; if that fails, the key stays.
     *
     * @throws GatewayException if it cannot be read, has none, or one that no header can carry
     */
    public void reload() {
        if (fileOrNull != null) {
            final SecretFile.Line key =
                    SecretFile.token(GatewaySettings.WORKER_KEY_FILE.name(), fileOrNull);
            header = bearer(key.secret().value(), key.from());
        } else if (givenOrNull != null) {
            header = bearer(givenOrNull.value(), GatewaySettings.WORKER_KEY.name());
        }
    }

    /** What no header can carry is said without the key: the client's own message has all of it. */
    private static String bearer(String key, String from) {
        for (int i = 0; i < key.length(); i++) {
            final char c = key.charAt(i);
            if (c <= ' ' || c > '~') {
                throw new GatewayException(
                        String.format(
                                "%s: character %d of the key is U+%04X, which no header has",
                                from, i + 1, (int) c),
                        null);
            }
        }
        return "Bearer " + key;
    }

    /** Value of {@code Authorization} for a worker; null to leave the client's. */
    public String of(Upstream upstream) {
        final Secret own = upstream.credentials();
        return own == null ? header : own.value();
    }
}
