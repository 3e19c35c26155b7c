package io.kvasir.nixl.transfer;

import io.kvasir.panama.NixlAgentConfig;
import io.kvasir.panama.NixlAvailability.Available;
import io.kvasir.panama.NixlProbe;

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
