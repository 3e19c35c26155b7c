/**
 * Sources of workers outside ({@link io.kvasir.gateway.discovery.Discoveries}): registrations in
 * NATS, etcd and Kubernetes, Kubernetes' EndpointSlices.
 *
 * <p>Knows {@code upstream}, {@code config} and the rooms worker-registry and nats-sync.
 */
package io.kvasir.gateway.discovery;
