/**
 * Kubernetes' API server over the JDK's HTTP client: {@link
 * io.kvasir.registry.kubernetes.KubernetesClient} for resources of any kind, {@link
 * io.kvasir.registry.kubernetes.ResourceWatch} that follows them, {@link
 * io.kvasir.registry.kubernetes.KubernetesStore} for registrations in custom resources.
 *
 * <p>Knows {@code registry} and Jackson.
 */
package io.kvasir.registry.kubernetes;
