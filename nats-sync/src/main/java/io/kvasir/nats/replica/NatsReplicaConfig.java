package io.kvasir.nats.replica;

import io.kvasir.nats.NatsAccess;

import java.util.Objects;

/**
 * Where a router meets its replicas.
 *
 * @param access where NATS is
 * @param namespace of the fleet
 * @param component of the workers; replicas have the same
 * @param endpoint added to the subject of messages about bookings; empty for none. Those of the
 *     component and of all its endpoints are received in any case
 * @param form in which messages about bookings are sent
 * @param blockSize tokens of a block
 */
public record NatsReplicaConfig(
        NatsAccess access,
        String namespace,
        String component,
        String endpoint,
        WireForm form,
        int blockSize) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public NatsReplicaConfig {
        Objects.requireNonNull(access, "access");
        Objects.requireNonNull(form, "form");
        Objects.requireNonNull(endpoint, "endpoint");
        check("namespace", namespace);
        check("component", component);
    }

    private static void check(String name, String value) {
        if (value.isBlank()) {
            throw new IllegalArgumentException(name + " of NATS is empty");
        }
    }
}
