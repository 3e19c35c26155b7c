package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;

/**
 * A watch of an etcd that writes, compacts, refuses, breaks off at any byte, cancels, says nonsense
 * and is replaced by another one or by its backup, between the pages of a read too, whose term may
 * be as high as that of what it replaces. What is read is what was there at one moment; when all is
 * quiet, what was reported is what is there.
 */
class EtcdWatchModelTest {
    private static final int TRIALS = Trials.of(3, 25);
    private static final int ROUNDS = 12;

    @Test
    void whatIsReportedIsWhatIsThereOnceAllIsQuiet() throws IOException {
        final long seed = Seeds.next("EtcdWatchModelTest");
        try (Etcd etcd = new Etcd()) {
            for (int trial = 0; trial < TRIALS; trial++) {
                try {
                    run(etcd, new Random(seed + trial));
                } catch (RuntimeException | Error e) {
                    throw new AssertionError("-Dseed=" + (seed + trial), e);
                }
            }
        }
    }

    private static void run(Etcd etcd, Random random) {
        etcd.begin(random);
        final Seen seen = new Seen(etcd);
        try (EtcdStore store =
                new EtcdStore(
                        EtcdOptions.of(
                                List.of(etcd.uri()), Duration.ofHours(1), Duration.ofSeconds(60)),
                        "/p/")) {
            final EtcdStore.Watch watch = store.new Watch("ns/", seen);
            for (int round = 0; round < ROUNDS; round++) {
                etcd.write();
                final int losses = seen.losses;
                final long pauseMs = watch.round();
                assertTrue(pauseMs >= 200 && pauseMs <= 5_000, () -> "pause of " + pauseMs);
                assertTrue(seen.losses - losses <= 1, "one loss a round");
            }
            etcd.isFaulty(false);
            watch.round();
            assertEquals(etcd.keys(), seen.keys);
        }
    }

    /** What was reported. */
    private static final class Seen implements LeasedStore.Watcher {
        private final Etcd etcd;
        private final NavigableMap<String, String> keys = new TreeMap<>();
        private boolean isLost = true;
        private int losses;

        Seen(Etcd etcd) {
            this.etcd = etcd;
        }

        @Override
        public void view(List<Stored> all) {
            isLost = false;
            keys.clear();
            all.forEach(this::put);
            assertTrue(etcd.wereEver(keys), keys::toString);
        }

        @Override
        public void put(Stored stored) {
            assertFalse(isLost, "a view comes first");
            keys.put(stored.key(), new String(stored.value(), StandardCharsets.UTF_8));
        }

        @Override
        public void deleted(String key) {
            assertFalse(isLost, "a view comes first");
            keys.remove(key);
        }

        @Override
        public void lost(String cause) {
            losses++;
            isLost = true;
        }
    }

    /** The other side. Each watch ends by itself. */
    private static final class Etcd implements AutoCloseable {
        private static final ObjectMapper JSON = new ObjectMapper();
        private static final int KEYS = 40;

        private record Change(long revision, String key, String valueOrNull) {
            String json() {
                return "{%s\"kv\":%s}"
                        .formatted(
                                valueOrNull == null ? "\"type\":\"DELETE\"," : "",
                                kv(key, valueOrNull == null ? "" : valueOrNull, revision));
            }
        }

        /** One life of a store; what is older than what is compacted is no more. */
        private static final class History {
            private final String cluster;
            private final long term;
            private final long first;
            private final List<NavigableMap<String, String>>
                    states; // by revision less the first one
            private final List<Change> changes;
            private long compacted;

            History(String cluster, long term, long first) {
                this.cluster = cluster;
                this.term = term;
                this.first = first;
                states = new ArrayList<>(List.of(new TreeMap<>()));
                changes = new ArrayList<>();
            }

            /** What a backup of another one has, restored by the same members. */
            History(History from, long revision, long term) {
                cluster = from.cluster;
                this.term = term;
                first = from.first;
                states = new ArrayList<>(from.states.subList(0, (int) (revision - first + 1)));
                changes = new ArrayList<>(from.changes);
                changes.removeIf(change -> change.revision > revision);
                compacted = Math.min(from.compacted, revision);
            }

            NavigableMap<String, String> at(long revision) {
                return states.get(Math.toIntExact(revision - first));
            }

            long revision() {
                return first + states.size() - 1;
            }
        }

        private final HttpServer server;
        private Random random;
        private List<History> lives; // the last one is the present one
        private boolean isFaulty;

        Etcd() throws IOException {
            System.setProperty("sun.net.httpserver.nodelay", "true"); // else 40 ms an answer
            server =
                    HttpServer.create(
                            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.createContext("/v3/kv/range", this::read);
            server.createContext("/v3/watch", this::watch);
            server.start();
        }

        URI uri() {
            return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        }

        synchronized void begin(Random with) {
            random = with;
            isFaulty = true;
            lives = new ArrayList<>();
            beginAnother();
        }

        private void beginAnother() {
            lives.add(
                    new History(
                            Integer.toString(lives.size()),
                            1000 + random.nextInt(5),
                            1L + random.nextInt(100)));
            for (int i = random.nextInt(30); i > 0; i--) {
                change();
            }
        }

        private History now() {
            return lives.getLast();
        }

        synchronized void isFaulty(boolean now) {
            isFaulty = now;
        }

        synchronized long revision() {
            return now().revision();
        }

        synchronized NavigableMap<String, String> keys() {
            return now().at(revision());
        }

        synchronized boolean wereEver(NavigableMap<String, String> keys) {
            return lives.stream().anyMatch(life -> life.states.contains(keys));
        }

        /** Changes it, or puts another one, or its own backup, in its place. */
        synchronized void write() {
            final int what = isFaulty ? random.nextInt(12) : 2;
            if (what == 0) {
                beginAnother();
            } else if (what == 1) {
                final int lost = random.nextInt(Math.min(5, now().states.size()));
                final long term = now().term - 1 + random.nextInt(3);
                lives.add(new History(now(), revision() - lost, term));
                for (int i = random.nextInt(2 * lost + 1); i > 0; i--) {
                    change(); // others are faster
                }
            }
            change();
        }

        /** Up to three keys in one transaction. */
        private void change() {
            final NavigableMap<String, String> next = new TreeMap<>(now().at(revision()));
            final List<Change> changes = now().changes;
            final long revision = revision() + 1;
            for (int i = 1 + random.nextInt(3); i > 0; i--) {
                final String key = "ns/" + (char) ('0' + random.nextInt(KEYS));
                if (changes.stream().anyMatch(c -> c.revision == revision && c.key.equals(key))) {
                    continue; // once in a transaction
                }
                if (next.containsKey(key) && random.nextInt(3) == 0) {
                    next.remove(key);
                    changes.add(new Change(revision, key, null));
                } else {
                    final String value = "v" + random.nextInt(1000);
                    next.put(key, value);
                    changes.add(new Change(revision, key, value));
                }
            }
            now().states.add(next);
            if (random.nextInt(8) == 0) {
                now().compacted = Math.max(now().first, revision() - random.nextInt(3));
            }
        }

        private boolean fails(int oneOf) {
            return isFaulty && random.nextInt(oneOf) == 0;
        }

        private synchronized void read(HttpExchange exchange) throws IOException {
            final JsonNode request = JSON.readTree(exchange.getRequestBody().readAllBytes());
            if (isFaulty && random.nextInt(3) == 0) {
                write();
            }
            final long at = request.path("revision").asLong(revision());
            if (at < Math.max(now().compacted, now().first)) {
                answer(exchange, 400, "{\"error\":\"mvcc: required revision has been compacted\"}");
            } else if (at > revision()) {
                answer(exchange, 400, "{\"error\":\"mvcc: required revision is a future one\"}");
            } else if (fails(8)) {
                answer(exchange, 503, "{}");
            } else if (fails(8)) {
                answer(exchange, 200, List.of("", "{}", "{\"kvs\":[]}").get(random.nextInt(3)));
            } else {
                answer(exchange, 200, page(request, at));
            }
        }

        private String page(JsonNode request, long at) {
            final String from =
                    new String(
                            Base64.getDecoder().decode(request.path("key").asText()),
                            StandardCharsets.UTF_8);
            final int limit = request.path("limit").asInt();
            final List<String> found = new ArrayList<>();
            boolean more = false;
            for (Map.Entry<String, String> each : now().at(at).entrySet()) {
                if (("/p/" + each.getKey()).compareTo(from) >= 0) {
                    more = found.size() == limit;
                    if (more) {
                        break;
                    }
                    found.add(kv(each.getKey(), each.getValue(), at));
                }
            }
            return "{%s,\"kvs\":[%s],\"more\":%s}"
                    .formatted(header(), String.join(",", found), more);
        }

        private String header() {
            return "\"header\":{\"cluster_id\":\"%s\",\"revision\":\"%d\",\"raft_term\":\"%d\"}"
                    .formatted(now().cluster, revision(), now().term);
        }

        private static void answer(HttpExchange exchange, int status, String text)
                throws IOException {
            final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(bytes);
            }
        }

        private synchronized void watch(HttpExchange exchange) throws IOException {
            final JsonNode request = JSON.readTree(exchange.getRequestBody().readAllBytes());
            final long from = request.path("create_request").path("start_revision").asLong();
            if (fails(8)) {
                answer(exchange, 503, "{}");
                return;
            }
            final StringBuilder said = new StringBuilder();
            result(said, "\"created\":true");
            if (from <= now().compacted) {
                result(said, "\"canceled\":true,\"compact_revision\":\"" + now().compacted + "\"");
            } else {
                tell(said, from);
            }
            end(exchange, said);
        }

        private void tell(StringBuilder said, long from) {
            long next = from;
            for (int i = isFaulty ? random.nextInt(4) : 1; i > 0; i--) {
                if (isFaulty && random.nextBoolean()) {
                    change(); // the connection ends with a store that is replaced
                }
                next = tellSome(said, next);
                if (fails(4)) {
                    result(said, "\"watch_id\":\"0\""); // progress
                }
            }
        }

        /** The changes from one revision to another one; of a large one there may be fragments. */
        private long tellSome(StringBuilder said, long from) {
            final long to =
                    isFaulty
                            ? from + random.nextInt((int) Math.max(1, revision() + 2 - from))
                            : revision();
            final List<Change> some =
                    now().changes.stream()
                            .filter(c -> c.revision >= from && c.revision <= to)
                            .toList();
            int sent = 0;
            while (sent < some.size()) {
                final int end =
                        isFaulty ? sent + 1 + random.nextInt(some.size() - sent) : some.size();
                final List<String> events = new ArrayList<>();
                some.subList(sent, end).forEach(change -> events.add(change.json()));
                result(
                        said,
                        (end < some.size() ? "\"fragment\":true," : "")
                                + "\"events\":["
                                + String.join(",", events)
                                + "]");
                sent = end;
            }
            return Math.max(from, to + 1);
        }

        private void result(StringBuilder said, String result) {
            said.append("{\"result\":{%s,%s}}\n".formatted(header(), result));
        }

        /** As etcd ends it, or as a lost connection, a member in trouble or another program do. */
        private void end(HttpExchange exchange, StringBuilder said) throws IOException {
            final int how = isFaulty ? random.nextInt(6) : 0;
            switch (how) {
                case 1 -> result(said, "\"canceled\":true");
                case 2 -> said.append("{\"error\":{\"grpc_code\":14,\"message\":\"leaving\"}}\n");
                case 3 -> said.append(random.nextBoolean() ? "<html>" : "7\n");
                case 4 -> said.setLength(random.nextInt(said.length() + 1));
                default -> {} // it is whole
            }
            exchange.sendResponseHeaders(200, how == 5 ? Long.MAX_VALUE : 0); // 5: it breaks
            exchange.getResponseBody().write(said.toString().getBytes(StandardCharsets.UTF_8));
            exchange.getResponseBody().flush();
            exchange.close();
        }

        private static String kv(String key, String value, long revision) {
            return "{\"key\":\"%s\",\"value\":\"%s\",\"mod_revision\":\"%d\"}"
                    .formatted(base64("/p/" + key), base64(value), revision);
        }

        private static String base64(String text) {
            return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }
}
