package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;

import java.nio.file.Path;

/** The gateway's own key towards workers, where one is set. Thread-safe. */
public final class WorkerKey {
    private final Secret givenOrNull;
    private final Path fileOrNull;
    private volatile String header;

    /**
     * Reads the file, whose first line counts.
     *
     * @throws GatewayException if it cannot be read, or has none
     */
    public WorkerKey(GatewayConfig config) {
        givenOrNull = config.get(GatewaySettings.WORKER_KEY);
        fileOrNull = config.get(GatewaySettings.WORKER_KEY_FILE);
        reload();
    }

    /**
     * Reads the file again; if that fails, the key stays.
     *
     * @throws GatewayException if it cannot be read, or has none
     */
    public void reload() {
        if (fileOrNull != null) {
            header = "Bearer " + BearerTokens.lines(fileOrNull).getFirst();
        } else if (givenOrNull != null) {
            header = "Bearer " + givenOrNull.value();
        }
    }

    /** Value of {@code Authorization} for a worker; null to leave the client's. */
    public String of(Upstream upstream) {
        final Secret own = upstream.credentials();
        return own == null ? header : own.value();
    }
}
