package io.kvasir.gateway.config;

/** Where the lock of the gateway is that takes a snapshot for all. */
public enum SnapshotLockKind {
    /** In a bucket of NATS's key-value store. */
    NATS,
    /** In etcd. */
    ETCD
}
