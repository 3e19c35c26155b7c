/**
 * Registrations of workers: the document ({@link io.kvasir.registry.Registration}), the seam to a
 * store that keeps it under a lease ({@link io.kvasir.registry.LeasedStore}), the side that
 * registers ({@link io.kvasir.registry.Registrar}) and the side that reads ({@link
 * io.kvasir.registry.InstanceView}).
 *
 * <p>Knows the JDK and Jackson.
 */
package io.kvasir.registry;
