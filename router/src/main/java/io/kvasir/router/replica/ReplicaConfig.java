package io.kvasir.router.replica;

import java.util.function.LongSupplier;

/**
 * How a router takes part in replica sync.
 *
 * @param origin its identity
 * @param hashCheck the local hash that it gives to a block of zeros
 * @param digestNs time between digests of its own bookings
 * @param leaseNs silence after which another router's bookings are dropped
 * @param foreignNs after what time a booking of a router is dropped that sends no digests, asked at
 *     each tick by its thread; 0 = never
 */
public record ReplicaConfig(
        ReplicaOrigin origin,
        long hashCheck,
        long digestNs,
        long leaseNs,
        LongSupplier foreignNs) {}
