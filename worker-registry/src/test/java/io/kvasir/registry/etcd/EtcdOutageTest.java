package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.SeenKeys;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.List;
import java.util.Set;

/** What is said of etcd when it fails while it is watched. */
class EtcdOutageTest {
    private final SeenKeys seen = new SeenKeys();
    private ScriptedEtcd etcd;
    private EtcdStore store;

    @BeforeEach
    void watchOne() throws Exception {
        etcd = new ScriptedEtcd();
        etcd.put("/p/ns/a", "1");
        store =
                new EtcdStore(
                        EtcdOptions.of(
                                List.of(etcd.uri()), // it is asked three times a second
                                Duration.ofSeconds(1),
                                Duration.ofSeconds(20)),
                        "/p/");
        store.watch("ns/", seen);
        Eventually.holds("watched", () -> etcd.isWatched() && seen.keys.equals(Set.of("ns/a")));
    }

    @AfterEach
    void close() {
        store.close();
        etcd.close();
    }

    @Test
    void theReasonOfARefusalIsSaidNotThatTheWatchWasClosed() throws Exception {
        etcd.refuseReads("{\"error\":\"etcdserver: user name is empty\",\"code\":3}");
        Eventually.holds("said", () -> seen.losses.size() > 1);
        for (String loss : seen.losses) {
            assertTrue(loss.contains("status 400: "), loss);
            assertTrue(loss.contains("user name is empty"), loss);
        }
        etcd.put("/p/ns/b", "1");
        etcd.refuseReads(null);
        Eventually.holds("read anew", () -> seen.keys.equals(Set.of("ns/a", "ns/b")));
    }

    @Test
    void aWatchThatBreaksWhileEtcdAnswersIsNoLoss() throws Exception {
        etcd.endWatch();
        etcd.put("/p/ns/b", "1");
        Eventually.holds("applied", () -> seen.keys.equals(Set.of("ns/a", "ns/b")));
        assertEquals(List.of(), seen.losses);
    }
}
