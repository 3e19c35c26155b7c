package io.kvasir.gateway.disagg;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.NixlMessages;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

import java.util.Optional;
import java.util.UUID;

/** Chooses how blocks are released, and says in the log how and why. */
final class ReleaseChoice {
    private static final Logger LOG = LoggerFactory.getLogger(BlockRelease.class);

    private ReleaseChoice() {}

    static BlockRelease open(GatewayConfig config) {
        final long leaseNs = config.get(GatewaySettings.PREFILL_LEASE).toNanos();
        final String library = config.get(GatewaySettings.NIXL_LIBRARY);
        if (library.equals(GatewaySettings.NIXL_OFF)) {
            return leaseOnly(
                    Level.INFO, GatewaySettings.NIXL_LIBRARY.name() + "=" + library, leaseNs);
        }
        final Optional<String> file =
                library.equals(GatewaySettings.NIXL_AUTO) ? Optional.empty() : Optional.of(library);
        return switch (NixlMessages.open(file, "kvasir-gateway-" + UUID.randomUUID())) {
            case NixlMessages.Opened.Absent(String reason) ->
                    leaseOnly(Level.WARN, reason, leaseNs);
            case NixlMessages.Opened.Open(KvTransport transport, String nixl) -> {
                LOG.info(
                        "vLLM's prefill workers are notified to free blocks that no decode"
                                + " fetches: {}",
                        nixl);
                yield new NixlBlockRelease(transport, leaseNs);
            }
        };
    }

    private static BlockRelease leaseOnly(Level level, String why, long leaseNs) {
        LOG.atLevel(level)
                .log(
                        "prefill workers free blocks that no decode fetches only when their lease"
                                + " of {} s ends: {}",
                        leaseNs / 1_000_000_000L,
                        why);
        return new LeaseOnly(
                LeaseReason.NO_LIBRARY, leaseNs, new ReleaseCounters(), System::nanoTime);
    }
}
