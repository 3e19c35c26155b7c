package io.kvasir.nixl.exchange.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.registry.RegistryException;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/**
 * Two exchanges that publish and withdraw records of the same names through an etcd that refuses
 * calls, loses answers and leases, is put back to its backup, and that others write to. When all is
 * quiet it has the newest of what is published, both see exactly that, and one that closes leaves
 * nothing of its own.
 */
class EtcdExchangeModelTest {
    private static final int TRIALS = 2;
    private static final int STEPS = 40;
    private static final int QUIET_ROUNDS = 3;
    private static final String PREFIX = "/k/";

    @Test
    void whatIsPublishedIsThereAndIsSeenOnceAllIsQuiet() throws IOException {
        final long seed = Seeds.next("EtcdExchangeModelTest");
        try (Etcd etcd = new Etcd()) {
            for (int trial = 0; trial < TRIALS; trial++) {
                try {
                    new Run(etcd, new Random(seed + trial)).run();
                } catch (RuntimeException | Error e) {
                    throw new AssertionError("-Dseed=" + (seed + trial), e);
                }
            }
        }
    }

    @Test
    void whatIsKnownStaysWhereThereIsMoreThanCanBe() throws IOException {
        try (Etcd etcd = new Etcd()) {
            etcd.begin(new Random(0));
            etcd.isFaulty = false;
            for (int i = 0; i < MetadataExchange.MAX_RECORDS; i++) {
                etcd.put(Records.record("n" + i, 1, 1));
            }
            final Owner owner = new Owner(etcd);
            owner.exchange.watchOnce();
            final Map<String, PeerRecord> known = Map.copyOf(owner.notified);
            assertEquals(MetadataExchange.MAX_RECORDS, known.size());
            etcd.put(Records.record("a", 1, 1)); // the first one of all
            owner.exchange.watchOnce();
            assertEquals(known, owner.notified);
            etcd.put(Records.record("b", 1, 1));
            etcd.put(Records.record("c", 1, 1));
            etcd.beforeWatch =
                    () -> {
                        etcd.delete(PREFIX + "c"); // which there was no room for
                        etcd.delete(PREFIX + "n0");
                        etcd.delete(PREFIX + "n1");
                    };
            owner.exchange.watchOnce();
            assertEquals(etcd.records(), owner.notified);
            owner.exchange.close();
        }
    }

    /** One trial. */
    private static final class Run {
        private final Etcd etcd;
        private final Random random;
        private final List<Owner> owners;
        private long generation; // of all records, so that no two are the same

        Run(Etcd etcd, Random random) {
            this.etcd = etcd;
            this.random = random;
            etcd.begin(random);
            owners = List.of(new Owner(etcd), new Owner(etcd));
            etcd.owners = owners;
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                step(owners.get(random.nextInt(owners.size())));
            }
            etcd.isFaulty = false;
            for (int round = 0; round < QUIET_ROUNDS; round++) {
                owners.forEach(owner -> owner.exchange.renew());
                owners.forEach(owner -> owner.exchange.watchOnce());
            }
            check();
            close();
        }

        private void step(Owner owner) {
            final String name = String.valueOf((char) ('a' + random.nextInt(4)));
            switch (random.nextInt(9)) {
                case 0, 1 -> owner.publish(record(name));
                case 2 -> owner.withdraw(name);
                case 3, 4 -> owner.attempt(owner.exchange::renew);
                case 5, 6 -> owner.attempt(owner.exchange::watchOnce);
                case 7 -> etcd.loseSomething();
                default -> etcd.writeAsAnother(name);
            }
        }

        /** Mostly newer than all before. */
        private PeerRecord record(String name) {
            generation += 2;
            return Records.record(name, 1, random.nextInt(4) == 0 ? generation - 5 : generation);
        }

        private void check() {
            final Map<String, PeerRecord> stored = etcd.records();
            for (Owner owner : owners) {
                owner.published.forEach(
                        (name, record) -> {
                            final PeerRecord present = stored.get(name);
                            final boolean isThere =
                                    present != null
                                            && (present.equals(record)
                                                    || present.isNewerThan(record));
                            assertTrue(
                                    isThere || owner.superseded.contains(record),
                                    () -> record + " is not there, but " + present);
                        });
            }
            stored.forEach(
                    (name, record) ->
                            assertTrue(
                                    etcd.ofOthers.contains(record)
                                            || owners.stream()
                                                    .anyMatch(
                                                            o -> o.published.containsValue(record)),
                                    () -> record + " is there, and nothing publishes it"));
            for (Owner owner : owners) {
                assertEquals(stored, owner.seen());
                assertEquals(stored, owner.notified, "what listeners know");
            }
        }

        /** Also amid what has not been made up for. */
        private void close() {
            final Owner leaving = owners.getFirst();
            if (random.nextBoolean()) {
                etcd.isFaulty = true;
                for (int step = random.nextInt(6); step > 0; step--) {
                    step(leaving);
                }
                etcd.isFaulty = false;
            }
            owners.forEach(owner -> owner.exchange.close());
            etcd.records()
                    .forEach(
                            (name, record) ->
                                    assertTrue(
                                            etcd.ofOthers.contains(record)
                                                    || etcd.isWithoutOwner(name),
                                            () -> record + " outlives its owner"));
        }
    }

    /** An exchange, and what it is to publish. */
    private static final class Owner {
        private final EtcdExchange exchange;
        private final Map<String, PeerRecord> published = new HashMap<>();
        private final Set<PeerRecord> superseded = new HashSet<>();
        private final Map<String, PeerRecord> notified = new TreeMap<>();

        Owner(Etcd etcd) {
            exchange =
                    EtcdExchange.stepped(
                            new EtcdConfig(
                                    List.of(etcd.uri()),
                                    PREFIX,
                                    Duration.ofHours(1),
                                    Duration.ofSeconds(60)));
            var _ = exchange.watch(null, this::onRecord);
        }

        private void onRecord(Change change, PeerRecord record) {
            final PeerRecord before = notified.get(record.name());
            switch (change) {
                case UP -> assertEquals(null, before);
                case CHANGED -> assertTrue(record.isNewerThan(before));
                case GONE -> assertEquals(before, record);
            }
            if (change == Change.GONE) {
                notified.remove(record.name());
            } else {
                notified.put(record.name(), record);
            }
        }

        void publish(PeerRecord record) {
            try {
                exchange.publish(record);
                published.put(record.name(), record);
            } catch (ExchangeException e) {
                assertTrue(e.kind() == Kind.STALE || e.kind() == Kind.UNAVAILABLE, e::getMessage);
            }
        }

        void withdraw(String name) {
            published.remove(name);
            attempt(() -> exchange.withdraw(name));
        }

        /** What fails is made up for later. */
        void attempt(Runnable call) {
            try {
                call.run();
            } catch (ExchangeException e) {
                assertEquals(Kind.UNAVAILABLE, e.kind());
            } catch (RegistryException e) {
                assertEquals(RegistryException.Kind.UNAVAILABLE, e.kind());
            }
        }

        Map<String, PeerRecord> seen() {
            final Map<String, PeerRecord> seen = new TreeMap<>();
            for (String name : List.of("a", "b", "c", "d")) {
                try {
                    seen.put(name, exchange.find(name, Duration.ZERO));
                } catch (ExchangeException e) {
                    assertEquals(Kind.NOT_FOUND, e.kind());
                }
            }
            return seen;
        }
    }

    /** The other side. Each watch ends by itself. */
    private static final class Etcd implements AutoCloseable {
        private static final ObjectMapper JSON = new ObjectMapper();

        private record Written(String key, Value valueOrNull, long revision) {}

        private record Value(String base64, long revision, long lease) {}

        private record State(TreeMap<String, Value> keys, Set<Long> leases) {
            State copy() {
                return new State(new TreeMap<>(keys), new HashSet<>(leases));
            }
        }

        private final HttpServer server;
        private final Set<PeerRecord> ofOthers = new HashSet<>();
        private List<Owner> owners = List.of();
        private Random random;
        private State now;
        private State backup;
        private List<Written> changes;
        private long revision;
        private long term;
        private long leases;
        private boolean isFaulty;
        private Runnable beforeWatch = () -> {};

        Etcd() throws IOException {
            System.setProperty("sun.net.httpserver.nodelay", "true"); // else 40 ms an answer
            server =
                    HttpServer.create(
                            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.createContext("/", this::answer);
            server.start();
        }

        URI uri() {
            return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        }

        synchronized void begin(Random with) {
            random = with;
            owners = List.of();
            ofOthers.clear();
            now = new State(new TreeMap<>(), new HashSet<>());
            backup = now.copy();
            changes = new ArrayList<>();
            revision = 1;
            term = 100;
            isFaulty = true;
        }

        synchronized Map<String, PeerRecord> records() {
            final Map<String, PeerRecord> records = new TreeMap<>();
            now.keys.forEach(
                    (key, value) -> {
                        final PeerRecord record = recordOrNull(value);
                        if (record != null && key.equals(PREFIX + record.name())) {
                            records.put(record.name(), record);
                        }
                    });
            return records;
        }

        private static PeerRecord recordOrNull(Value value) {
            try {
                return PeerRecord.decode(Base64.getDecoder().decode(value.base64));
            } catch (ExchangeException e) {
                return null;
            }
        }

        /** Whether what is there has a lease that its owner has given up, which will end. */
        synchronized boolean isWithoutOwner(String name) {
            return now.keys.get(PREFIX + name).lease == 0;
        }

        synchronized void loseSomething() {
            switch (random.nextInt(4)) {
                case 0 -> {
                    if (!now.leases.isEmpty()) {
                        endLease(List.copyOf(now.leases).get(random.nextInt(now.leases.size())));
                    }
                }
                case 1 -> backup = now.copy();
                case 2 -> {
                    now = backup.copy();
                    ofOthers.addAll(records().values()); // with their leases, withdrawn ones too
                    changes = new ArrayList<>();
                    revision += 100;
                    term = Math.max(1, term - 1); // as of one that begins anew
                }
                default -> {
                    if (!now.keys.isEmpty()) {
                        delete(List.copyOf(now.keys.keySet()).get(random.nextInt(now.keys.size())));
                    }
                }
            }
        }

        synchronized void writeAsAnother(String name) {
            final PeerRecord other =
                    Records.record(
                            random.nextBoolean() ? name : "z", 1, 1 + random.nextInt(60) * 2);
            final byte[] value =
                    random.nextBoolean() ? other.encode() : name.getBytes(StandardCharsets.UTF_8);
            final Value present = now.keys.get(PREFIX + name);
            final PeerRecord before = present == null ? null : recordOrNull(present);
            if (value.length > 1 && before != null && !other.isNewerThan(before)) {
                return; // others keep to that, too
            }
            ofOthers.add(other);
            put(PREFIX + name, Base64.getEncoder().encodeToString(value), 0);
        }

        synchronized void put(PeerRecord record) {
            put(PREFIX + record.name(), Base64.getEncoder().encodeToString(record.encode()), 0);
        }

        private void put(String key, String base64, long lease) {
            revision++;
            now.keys.put(key, new Value(base64, revision, lease));
            changes.add(new Written(key, now.keys.get(key), revision));
            final PeerRecord record = recordOrNull(now.keys.get(key));
            for (Owner owner : owners) {
                owner.published.values().stream()
                        .filter(each -> key.equals(PREFIX + each.name()))
                        .filter(each -> record != null && record.isNewerThan(each))
                        .forEach(owner.superseded::add);
            }
        }

        private synchronized void delete(String key) {
            if (now.keys.remove(key) != null) {
                revision++;
                changes.add(new Written(key, null, revision));
            }
        }

        private void endLease(long lease) {
            now.leases.remove(lease);
            List.copyOf(now.keys.keySet()).stream()
                    .filter(key -> now.keys.get(key).lease == lease)
                    .forEach(this::delete);
        }

        private synchronized void answer(HttpExchange exchange) throws IOException {
            final JsonNode body = JSON.readTree(exchange.getRequestBody().readAllBytes());
            if (isFaulty && random.nextInt(12) == 0) {
                loseSomething();
            }
            final int fault = isFaulty ? random.nextInt(16) : 2; // 0: not done, 1: answer lost
            final String said = fault == 0 ? "{}" : said(exchange.getRequestURI().getPath(), body);
            final byte[] bytes =
                    (said == null || fault <= 1 ? "{}" : said).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(said == null || fault <= 1 ? 503 : 200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        }

        /** Null for a refusal. */
        private String said(String path, JsonNode body) {
            return switch (path) {
                case "/v3/lease/grant" -> {
                    leases++;
                    now.leases.add(leases);
                    yield "{\"ID\":\"" + leases + "\"}";
                }
                case "/v3/lease/keepalive" ->
                        now.leases.contains(body.path("ID").asLong())
                                ? "{\"result\":{\"TTL\":\"5\"}}"
                                : "{\"result\":{}}";
                case "/v3/lease/revoke" -> {
                    endLease(body.path("ID").asLong());
                    yield "{}";
                }
                case "/v3/kv/range" -> range(body);
                case "/v3/kv/txn" -> transact(body);
                default -> watch(body);
            };
        }

        private String range(JsonNode body) {
            final String from = decoded(body.path("key"));
            final List<String> found = new ArrayList<>();
            final boolean isRange = body.has("range_end");
            (isRange ? now.keys.tailMap(from) : now.keys.subMap(from, from + '\0'))
                    .forEach((key, value) -> found.add(kv(key, value)));
            final int most = Math.min(found.size(), body.path("limit").asInt(found.size()));
            return "{%s,\"kvs\":[%s],\"more\":%s}"
                    .formatted(
                            header(),
                            String.join(",", found.subList(0, most)),
                            most < found.size());
        }

        private String transact(JsonNode body) {
            final JsonNode compare = body.at("/compare/0");
            final String key = decoded(compare.path("key"));
            final Value present = now.keys.get(key);
            if (compare.path("mod_revision").asLong() != (present == null ? 0 : present.revision)) {
                return "{%s}".formatted(header());
            }
            final JsonNode put = body.at("/success/0/request_put");
            if (put.isMissingNode()) {
                delete(key);
            } else if (!now.leases.contains(put.path("lease").asLong())) {
                return null; // etcd knows no such lease
            } else {
                put(key, put.path("value").asText(), put.path("lease").asLong());
            }
            return "{%s,\"succeeded\":true}".formatted(header());
        }

        private String watch(JsonNode body) {
            final long from = body.at("/create_request/start_revision").asLong();
            final List<String> said = new ArrayList<>(List.of("\"created\":true"));
            beforeWatch.run();
            if (isFaulty && random.nextBoolean()) {
                writeAsAnother("b");
                loseSomething();
            }
            for (Written change : changes) {
                if (change.revision >= from && (!isFaulty || random.nextInt(8) > 0)) {
                    said.add(
                            "\"events\":[{%s\"kv\":%s}]"
                                    .formatted(
                                            change.valueOrNull == null
                                                    ? "\"type\":\"DELETE\","
                                                    : "",
                                            kv(
                                                    change.key,
                                                    change.valueOrNull == null
                                                            ? new Value("", change.revision, 0)
                                                            : change.valueOrNull)));
                } else if (change.revision >= from) {
                    break; // the connection ends
                }
            }
            final StringBuilder lines = new StringBuilder();
            said.forEach(s -> lines.append("{\"result\":{%s,%s}}\n".formatted(header(), s)));
            return lines.toString();
        }

        private String header() {
            return "\"header\":{\"cluster_id\":\"1\",\"revision\":\"%d\",\"raft_term\":\"%d\"}"
                    .formatted(revision, term);
        }

        private static String decoded(JsonNode base64) {
            return new String(Base64.getDecoder().decode(base64.asText()), StandardCharsets.UTF_8);
        }

        private static String kv(String key, Value value) {
            return "{\"key\":\"%s\",\"value\":\"%s\",\"mod_revision\":\"%d\",\"lease\":\"%d\"}"
                    .formatted(
                            Base64.getEncoder()
                                    .encodeToString(key.getBytes(StandardCharsets.UTF_8)),
                            value.base64,
                            value.revision,
                            value.lease);
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }
}
