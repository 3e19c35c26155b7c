package io.kvasir.nixl.transport;

import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlProbe;

import java.util.Map;

/** Makes transports by the name of their kind. */
public final class Transports {
    private Transports() {}

    /** Makes one. */
    public static KvTransport create(String kind, String name) {
        return switch (kind) {
            case "nixl" -> {
                if (NixlProbe.probe() instanceof Available available) {
                    yield NixlTransport.create(
                            available.library(), name, NixlAgentConfig.DEFAULT, "UCX", Map.of());
                }
                throw new IllegalStateException(NixlProbe.probe().describe());
            }
            default -> throw new IllegalArgumentException("no transport of kind " + kind);
        };
    }
}
