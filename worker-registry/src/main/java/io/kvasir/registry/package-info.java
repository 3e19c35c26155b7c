/**
 * Registrations of workers: the document ({@link io.kvasir.registry.Registration}), the seam to a
 * store that keeps it under a lease ({@link io.kvasir.registry.LeasedStore}), who registers ({@link
 * io.kvasir.registry.Registrar}) and who looks ({@link io.kvasir.registry.InstanceView}).
 *
 * <p>Knows the JDK and Jackson.
 */
package io.kvasir.registry;
