package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** What is kept of keys that others have written below the prefix. */
class EtcdLimitsTest {
    private static final int MOST = 1 << 17;

    private ScriptedEtcd etcd;

    @BeforeEach
    void start() throws Exception {
        etcd = new ScriptedEtcd();
    }

    @AfterEach
    void close() {
        etcd.close();
    }

    private EtcdClient client(int answerBytes, int valueBytes, long totalBytes) {
        return new EtcdClient(
                EtcdOptions.of(
                        List.of(etcd.uri()), Duration.ofSeconds(3600), Duration.ofSeconds(60)),
                new ReadLimits(answerBytes, valueBytes, totalBytes));
    }

    /** Why each key was not read, empty where it was. */
    private static Map<String, String> unread(EtcdClient client, int most) {
        final Map<String, String> unread = new LinkedHashMap<>();
        for (EtcdClient.Entry entry : client.range("/p/", most).entries()) {
            final String why = entry.stored().unreadOrNull();
            assertTrue(entry.revision() > 0);
            assertEquals(why != null, entry.value().length == 0, entry.key());
            unread.put(entry.key(), why == null ? "" : why);
        }
        return unread;
    }

    @Test
    void ofAValueThatIsTooLargeTheKeyAndItsLengthAreKept() {
        etcd.put("/p/a", "1");
        etcd.put("/p/b", "x".repeat(1001));
        etcd.put("/p/c", "x".repeat(1000));
        try (EtcdClient client = client(1 << 20, 1000, 1 << 20)) {
            assertEquals(
                    Map.of("/p/a", "", "/p/b", "1001 bytes, at most 1000 are read", "/p/c", ""),
                    unread(client, MOST));
        }
    }

    @Test
    void aLargeAnswerIsReadInSmallerPagesAndAKeyThatFillsOneIsLeftOut() {
        for (int i = 100; i < 200; i++) {
            etcd.put("/p/" + i, "x".repeat(1000));
        }
        etcd.put("/p/140", "x".repeat(20_000));
        try (EtcdClient client = client(10_000, 100_000, 1 << 20)) {
            final Map<String, String> unread = unread(client, MOST);
            assertEquals(100, unread.size());
            assertEquals(
                    "its value makes an answer of etcd of more than 10000 bytes, which are the most"
                            + " that is read",
                    unread.remove("/p/140"));
            assertEquals(List.of(""), unread.values().stream().distinct().toList());
            assertEquals(50, unread(client, 50).size());
            assertEquals("/p/140", client.get("/p/140").key());
            assertTrue(client.get("/p/140").stored().unreadOrNull() != null);
            assertNull(client.get("/p/141").stored().unreadOrNull());
            assertNull(client.get("/p/14"));
        }
    }

    @Test
    void allValuesTogetherHaveALimit() {
        for (int i = 100; i < 130; i++) {
            etcd.put("/p/" + i, "x".repeat(1000));
        }
        try (EtcdClient client = client(1 << 20, 10_000, 20_500)) {
            final Map<String, String> unread = unread(client, MOST);
            assertEquals(30, unread.size());
            assertEquals(20, unread.values().stream().filter(String::isEmpty).count());
            assertEquals(
                    "it is beyond the 20500 bytes of keys and values that are kept; delete what"
                            + " others have written there, or raise -Xmx",
                    unread.get("/p/129"));
        }
    }

    @Test
    void ofAWatchTooWhatIsTooLargeIsNotKept() throws Exception {
        final List<Stored> received = new CopyOnWriteArrayList<>();
        final EtcdClient.Events events =
                new EtcdClient.Events() {
                    @Override
                    public void onPut(EtcdClient.Entry entry) {
                        received.add(entry.stored());
                    }

                    @Override
                    public void onDelete(String key) {}
                };
        try (EtcdClient client = client(10_000, 1000, 1 << 20);
                ExecutorService thread = Executors.newSingleThreadExecutor()) {
            final EtcdClient.Position begin = client.range("/p/", 1).at();
            final Future<?> watch = thread.submit(() -> client.watch("/p/", begin, events));
            Eventually.holds("watched", etcd::isWatched);
            for (int i = 0; i < 20; i++) {
                etcd.put("/p/a", "x".repeat(1000)); // more together than one answer has
            }
            etcd.put("/p/b", "x".repeat(1001));
            Eventually.holds("received", () -> received.size() == 21);
            assertNull(received.getFirst().unreadOrNull());
            assertEquals("1001 bytes, at most 1000 are read", received.getLast().unreadOrNull());
            assertEquals(0, received.getLast().value().length);
            etcd.put("/p/c", "x".repeat(20_000));
            watch.get(); // it ends
            assertEquals(21, received.size());
        }
    }
}
