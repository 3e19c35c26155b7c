/**
 * Sources of workers outside ({@link io.kvasir.gateway.discovery.Discoveries}): registrations in
 * NATS and etcd, Kubernetes' EndpointSlices.
 *
 * <p>Knows {@code upstream}, {@code config}, {@code openai} and the rooms worker-registry and
 * nats-sync.
 */
package io.kvasir.gateway.discovery;
