package io.kvasir.gateway;

import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.discovery.Discoveries;
import io.kvasir.gateway.log.AccessLogs;
import io.kvasir.gateway.server.TrustedCallers;
import io.kvasir.gateway.trace.CollectorAccess;
import io.kvasir.gateway.upstream.EtcdStores;
import io.kvasir.gateway.upstream.FileDiscovery;
import io.kvasir.gateway.upstream.NatsAccesses;
import io.kvasir.gateway.upstream.TrustStore;
import io.kvasir.gateway.upstream.WorkerKey;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * The files and folders that a gateway needs to start, and what else of its process is not among
 * its settings. Stateless.
 */
public final class StartFiles {
    private static final List<Consumer<GatewayConfig>> READERS =
            List.of(
                    IndexMemory::check,
                    StartFiles::adminTokens,
                    TrustedCallers::new,
                    WorkerKey::new,
                    TrustStore::new,
                    NatsAccesses::check,
                    EtcdStores::check,
                    CollectorAccess::check,
                    Discoveries::checkKubernetes,
                    FileDiscovery::check,
                    AccessLogs::checkTarget,
                    Encoders::check);

    private StartFiles() {}

    /**
     * Reads those that a configuration uses, and connects to nothing. What is made to find out
     * whether it can be is deleted again.
     *
     * @return what {@link GatewayServer#start} would refuse, of all of it; empty for nothing
     */
    public static List<String> problems(GatewayConfig config) {
        final List<String> problems = new ArrayList<>();
        for (Consumer<GatewayConfig> reader : READERS) {
            try {
                reader.accept(config);
            } catch (GatewayException | IllegalArgumentException e) {
                problems.add(e.getMessage());
            }
        }
        problems.addAll(StartFolders.problems(config));
        return problems;
    }

    /** The tokens of the admin port. */
    static BearerTokens adminTokens(GatewayConfig config) {
        return BearerTokens.of(
                GatewaySettings.ADMIN_TOKEN.name(),
                config.get(GatewaySettings.ADMIN_TOKEN),
                config.get(GatewaySettings.ADMIN_TOKEN_FILE));
    }
}
