package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;
import io.kvasir.testsupport.EtcdServer;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** The same with the lock in a real etcd. */
@Tag("integration") // starts servers
class EtcdLockSnapshotsTest extends PlaneSnapshotsTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    @TempDir static Path folder;

    private static EtcdServer etcd;

    @BeforeAll
    static void startEtcd() throws InterruptedException {
        try {
            etcd = EtcdServer.in(EtcdServer.program(), folder);
            etcd.start();
        } catch (IOException e) {
            abort("skipped: no etcd: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopEtcd() throws InterruptedException {
        if (etcd != null) {
            etcd.stop();
        }
    }

    @Override
    LeasedStore locks(Duration ttl) {
        return new EtcdStore(
                new EtcdOptions(List.of(etcd.uri()), ttl, TIMEOUT, null, null), "/locks/");
    }
}
