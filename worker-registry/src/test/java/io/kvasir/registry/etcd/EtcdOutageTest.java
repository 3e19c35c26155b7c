package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;

/** What is said of etcd when it fails while it is watched. */
class EtcdOutageTest {
    private final Set<String> keys = new ConcurrentSkipListSet<>();
    private final List<String> losses = new CopyOnWriteArrayList<>();
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
        store.watch(
                "ns/",
                new LeasedStore.Watcher() {
                    @Override
                    public void view(List<Stored> all) {
                        keys.clear();
                        all.forEach(stored -> keys.add(stored.key()));
                    }

                    @Override
                    public void put(Stored stored) {
                        keys.add(stored.key());
                    }

                    @Override
                    public void deleted(String key) {
                        keys.remove(key);
                    }

                    @Override
                    public void lost(String cause) {
                        losses.add(cause);
                    }
                });
        Eventually.holds("watched", () -> etcd.isWatched() && keys.equals(Set.of("ns/a")));
    }

    @AfterEach
    void close() {
        store.close();
        etcd.close();
    }

    @Test
    void theReasonOfARefusalIsSaidNotThatTheWatchWasClosed() throws Exception {
        etcd.refuseReads("{\"error\":\"etcdserver: user name is empty\",\"code\":3}");
        Eventually.holds("said", () -> losses.size() > 1);
        for (String loss : losses) {
            assertTrue(loss.contains("status 400: "), loss);
            assertTrue(loss.contains("user name is empty"), loss);
        }
        etcd.put("/p/ns/b", "1");
        etcd.refuseReads(null);
        Eventually.holds("read anew", () -> keys.equals(Set.of("ns/a", "ns/b")));
    }

    @Test
    void aWatchThatBreaksWhileEtcdAnswersIsNoLoss() throws Exception {
        etcd.endWatch();
        etcd.put("/p/ns/b", "1");
        Eventually.holds("applied", () -> keys.equals(Set.of("ns/a", "ns/b")));
        assertEquals(List.of(), losses);
    }
}
