package io.kvasir.nixl.transport;

import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.panama.nixl.NixlException;
import io.kvasir.panama.nixl.NixlProbe;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Opens a {@link NixlTransport} for messages alone, where NIXL can be loaded: for processes that
 * notify peers and move no bytes.
 */
public final class NixlMessages {
    /**
     * The pause between two rounds of NIXL's own thread: a message leaves as much later, and the
     * thread wakes up 200 times a second instead of 10,000 times.
     */
    private static final long PROGRESS_DELAY_MICROS = 5_000;

    private NixlMessages() {}

    /** The answer. */
    public sealed interface Opened {
        /**
         * It is open.
         *
         * @param transport owned by the thread that will call it
         * @param description of the library, for a log
         */
        record Open(KvTransport transport, String description) implements Opened {}

        /**
         * It cannot be opened.
         *
         * @param reason what is wrong and what to change, for a log
         */
        record Absent(String reason) implements Opened {}
    }

    /**
     * Loads the library and starts an agent over UCX. Takes up to some seconds the first time.
     *
     * @param library path of libnixl_capi.so; empty searches as {@link NixlProbe#probe()} does
     * @param name unique among all agents that will ever know each other
     * @return the transport, or why there is none; never throws because NIXL is missing
     */
    public static Opened open(Optional<String> library, String name) {
        final NixlAvailability found =
                library.map(
                                file ->
                                        NixlProbe.probe(
                                                Map.of(NixlProbe.LIBRARY_PROPERTY, file)::get,
                                                _ -> null,
                                                List.of()))
                        .orElseGet(NixlProbe::probe);
        return switch (found) {
            case NixlAvailability.Absent absent -> new Opened.Absent(absent.describe());
            case NixlAvailability.Available nixl -> open(nixl, name);
        };
    }

    private static Opened open(NixlAvailability.Available nixl, String name) {
        final NixlAgentConfig config =
                new NixlAgentConfig(
                        true, NixlAgentConfig.ThreadSync.STRICT, PROGRESS_DELAY_MICROS, false);
        try {
            return new Opened.Open(
                    NixlTransport.create(
                            nixl.library(),
                            name,
                            config,
                            nixl.loopback() ? "LOOPBACK" : "UCX",
                            Map.of()),
                    nixl.describe());
        } catch (NixlException e) {
            return new Opened.Absent(nixl.describe() + ", but " + e.getMessage());
        }
    }
}
