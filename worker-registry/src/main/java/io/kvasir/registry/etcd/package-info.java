/**
 * etcd over its JSON gateway and the JDK's HTTP client: {@link io.kvasir.registry.etcd.EtcdClient}
 * for keys of any kind, {@link io.kvasir.registry.etcd.EtcdStore} for registrations.
 *
 * <p>Knows {@code registry} and Jackson.
 */
package io.kvasir.registry.etcd;
