/**
 * etcd over its JSON gateway and the JDK's HTTP client: {@link io.kvasir.registry.etcd.EtcdClient}
 * for whoever keeps keys there, {@link io.kvasir.registry.etcd.EtcdStore} for registrations.
 *
 * <p>Knows {@code registry} and Jackson.
 */
package io.kvasir.registry.etcd;
