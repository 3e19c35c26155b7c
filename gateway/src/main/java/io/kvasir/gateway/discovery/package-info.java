/**
 * Sources of workers outside: registrations in NATS and etcd ({@link
 * io.kvasir.gateway.discovery.RegistryDiscovery}), Kubernetes' EndpointSlices ({@link
 * io.kvasir.gateway.discovery.KubernetesDiscovery}).
 *
 * <p>Knows {@code upstream}, {@code config}, {@code openai} and the rooms worker-registry and
 * nats-sync.
 */
package io.kvasir.gateway.discovery;
