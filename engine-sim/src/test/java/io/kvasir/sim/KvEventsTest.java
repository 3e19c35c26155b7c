package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Zmtp;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

class KvEventsTest {
    private static SimConfig.Builder config() {
        return SimConfig.builder().blockSize(4).blocks(64).speedUp(100).seed(7);
    }

    private static int[] tokens(int from, int count) {
        return IntStream.range(from, from + count).toArray();
    }

    @Test
    void aSubscriberAndAReplayTellTheSame() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            final int[] unique = {0};
            client.awaitSubscription(() -> http.complete(tokens(1000 * unique[0]++, 4), 1));
            final long before = engine.state(0).lastSequence();
            http.complete(tokens(1, 10), 7);
            final EventClient.Message live = client.next();
            assertEquals("kv-events", live.topic());
            assertEquals(before + 1, live.sequence());
            final List<EventClient.Message> replayed = client.replay(engine, 0, before + 1);
            assertEquals(live, replayed.getFirst());
            assertEquals(client.next(), replayed.get(1));
            assertEquals(
                    before + 1 + engine.state(0).lastSequence() - before,
                    before + 1 + replayed.size());
            final List<EventClient.Message> all = client.replay(engine, 0, 0);
            assertEquals(0, all.getFirst().sequence());
            assertEquals(engine.state(0).lastSequence() + 1, all.size());
            assertEquals(engine.heldBlocks(0), EventClient.held(all));
            assertEquals(List.of(), client.replay(engine, 0, 1_000_000));
        }
    }

    @Test
    void aFrameOfImpossibleLengthEndsItsConnectionAlone() throws Exception {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            sendImpossibleFrame(engine.replayEndpoint(0), "DEALER");
            sendImpossibleFrame(engine.eventsEndpoint(0), "SUB");
            final Http http = new Http(engine);
            final int[] unique = {0};
            client.awaitSubscription(() -> http.complete(tokens(1000 * unique[0]++, 4), 1));
            assertFalse(client.replay(engine, 0, 0).isEmpty());
        }
    }

    /** Does the handshake of ZMTP 3.0, sends the frame and waits until that was read. */
    private static void sendImpossibleFrame(String endpoint, String type) throws IOException {
        final int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
        final byte[] frame = ByteBuffer.allocate(9).put((byte) 2).putLong(-1).array();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(60_000);
            final OutputStream out = socket.getOutputStream();
            out.write(Zmtp.greeting());
            out.write(Zmtp.ready(type));
            out.write(frame);
            socket.shutdownOutput();
            socket.getInputStream().readAllBytes();
        }
    }

    @Test
    void aStoreNamesParentTokensAndExtraKeysInTheOrderOfVllm() {
        try (SimEngine engine =
                        SimEngine.start(config().loraAdapters(List.of("x", "my-lora")).build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            http.post(
                    "/v1/completions",
                    Http.body(
                            tokens(1, 8), 6, ",\"model\":\"my-lora\",\"cache_salt\":\"tenant-a\""));
            final List<EventClient.Message> messages = client.replay(engine, 0, 0);
            final Map<String, Object> prompt = messages.getFirst().events().getFirst();
            assertEquals(
                    List.of(
                            "type",
                            "block_hashes",
                            "parent_block_hash",
                            "token_ids",
                            "block_size",
                            "lora_id",
                            "medium",
                            "lora_name",
                            "extra_keys",
                            "group_idx",
                            "kv_cache_spec_kind"),
                    List.copyOf(prompt.keySet()));
            assertNull(prompt.get("parent_block_hash"));
            assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L), prompt.get("token_ids"));
            assertEquals(2L, prompt.get("lora_id"));
            assertEquals("my-lora", prompt.get("lora_name"));
            assertEquals(
                    List.of(List.of("my-lora", "tenant-a"), List.of("my-lora")),
                    prompt.get("extra_keys"));
            assertEquals(0L, messages.getFirst().batch().get(2));

            // 6 output tokens: the sixth is never computed, so one more block is full
            final Map<String, Object> decoded = messages.get(1).events().getFirst();
            assertEquals(2, messages.size());
            assertEquals(EventClient.names(prompt).get(1), decoded.get("parent_block_hash"));
            assertEquals(4, ((List<?>) decoded.get("token_ids")).size());
        }
    }

    @Test
    void saltAdapterAndSeedEachNameBlocksTheirOwnWay() {
        final int[] tokens = tokens(1, 8);
        final BlockNamer namer = new BlockNamer(0, 1, 4);
        final long[] plain = namer.names(tokens, 8, null, null);
        assertEquals(plain[1], namer.names(tokens, 8, null, null)[1]);
        for (long[] other :
                List.of(
                        namer.names(tokens, 8, "a", null),
                        namer.names(tokens, 8, null, "a"),
                        new BlockNamer(0, 2, 4).names(tokens, 8, null, null))) {
            assertNotEquals(plain[0], other[0]);
            assertNotEquals(plain[1], other[1]);
        }
        assertEquals(1, namer.names(tokens, 7, null, null).length);
    }

    @Test
    void aRepeatedPromptOfWholeBlocksMakesASecondCopyOfItsLastBlock() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            assertEquals(0, http.cachedTokens(tokens(1, 8), 1));
            assertEquals(4, http.cachedTokens(tokens(1, 8), 1));
            assertEquals(8, http.cachedTokens(tokens(1, 9), 1));
            final List<EventClient.Message> messages = client.replay(engine, 0, 0);
            final List<Long> names = EventClient.names(messages.get(0).events().getFirst());
            assertEquals(2, messages.size());
            assertEquals(
                    names.subList(1, 2), EventClient.names(messages.get(1).events().getFirst()));
            assertEquals(Map.of(names.get(0), 1, names.get(1), 2), engine.heldBlocks(0));
        }
    }

    @Test
    void theDeepestBlockOfTheLeastRecentlyUsedChainIsEvictedFirstAndBeforeTheStore() {
        try (SimEngine engine = SimEngine.start(config().blocks(8).maxModelLength(32).build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            http.complete(tokens(100, 13), 1); // 3 full blocks and a tail
            http.complete(tokens(200, 13), 1);
            http.complete(tokens(100, 13), 1); // the first chain is used again
            http.complete(tokens(300, 13), 1); // 4 blocks wanted, 2 without a hash are free
            final List<EventClient.Message> messages = client.replay(engine, 0, 0);
            final List<Long> second = EventClient.names(messages.get(1).events().getFirst());
            final EventClient.Message last = messages.getLast();
            assertEquals(List.of("BlockRemoved", "BlockRemoved", "BlockStored"), last.types());
            final List<Long> evicted =
                    List.of(
                            EventClient.names(last.events().get(0)).getFirst(),
                            EventClient.names(last.events().get(1)).getFirst());
            assertEquals(List.of(second.get(2), second.get(1)), evicted);
            assertEquals(4, http.cachedTokens(tokens(200, 13), 1));
            assertEquals(engine.heldBlocks(0), EventClient.held(client.replay(engine, 0, 0)));
        }
    }

    @Test
    void aResetIsAnnouncedBeforeTheNextStoreAndNotEarlier() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            http.complete(tokens(1, 9), 1);
            assertTrue(http.post("/reset_prefix_cache", "").get("success").booleanValue());
            assertEquals(0, engine.state(0).lastSequence());
            assertEquals(Map.of(), engine.heldBlocks(0));
            assertEquals(0, http.cachedTokens(tokens(1, 9), 1));
            assertEquals(
                    List.of("AllBlocksCleared", "BlockStored"),
                    client.replay(engine, 0, 1).getFirst().types());
        }
    }

    @Test
    void aResetIsRefusedWhileBlocksAreInUseUnlessRunningRequestsBeginAgain()
            throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        try (SimEngine engine = SimEngine.start(config().speedUp(1).build(), clock)) {
            final Http http = new Http(engine);
            final var running = http.sendAsync("/v1/completions", Http.body(tokens(1, 9), 20, ""));
            Eventually.holds(() -> engine.state(0).running() == 1);
            assertFalse(http.post("/reset_prefix_cache", "").get("success").booleanValue());
            assertTrue(
                    http.post("/reset_prefix_cache?reset_running_requests=true", "")
                            .get("success")
                            .booleanValue());
            while (engine.state(0).finished() == 0) {
                assertTrue(clock.advanceToNext(), "asleep before its end");
            }
            final int[] ids = Http.outputIds(Http.tree(running.join().body()));
            assertEquals(20, ids.length);
            assertEquals(1, engine.state(0).preemptions());
        }
    }

    @Test
    void eachRankHasItsOwnPoolPortsAndNumbersAndAHeaderPinsIt() {
        final int base = FreePorts.run(4);
        try (SimEngine engine =
                        SimEngine.start(
                                config().dataParallelSize(2)
                                        .eventsPort(base)
                                        .replayPort(base + 2)
                                        .build());
                EventClient client = new EventClient(engine, 1)) {
            assertEquals("tcp://127.0.0.1:" + (base + 1), engine.eventsEndpoint(1));
            assertEquals("tcp://127.0.0.1:" + (base + 3), engine.replayEndpoint(1));
            final Http http = new Http(engine);
            final String body = Http.body(tokens(1, 9), 1, "");
            for (int i = 0; i < 2; i++) {
                http.post("/v1/completions", body, "X-data-parallel-rank", "1");
            }
            assertEquals(-1, engine.state(0).lastSequence());
            assertEquals(0, engine.state(1).lastSequence());
            assertEquals(1L, client.replay(engine, 1, 0).getFirst().batch().get(2));
            assertEquals(
                    0,
                    Http.cachedTokens(
                            http.post("/v1/completions", body, "X-data-parallel-rank", "0")));
            assertEquals(
                    400,
                    http.send("/v1/completions", body, "X-data-parallel-rank", "2").statusCode());
        }
    }

    @Test
    void cachedTokensFollowAConversationThroughItsAnswers() {
        try (SimEngine engine = SimEngine.start(config().blocks(512).build())) {
            final Http http = new Http(engine);
            int[] history = tokens(1, 21);
            int computed = 0;
            for (int turn = 0; turn < 6; turn++) {
                final var answer = http.complete(history, 10);
                assertEquals(computed / 4 * 4, Http.cachedTokens(answer), "turn " + turn);
                computed = history.length + 9; // the last token is not computed
                final int[] next = tokens(50 * turn, 7);
                history =
                        java.util.stream.Stream.of(history, Http.outputIds(answer), next)
                                .flatMapToInt(IntStream::of)
                                .toArray();
            }
        }
    }

    @Test
    void hitBlocksAreAnnouncedAgainOnRequestAndAreNoNewCopies() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            http.complete(tokens(1, 9), 1);
            http.post(
                    "/v1/completions",
                    Http.body(
                            tokens(1, 14),
                            1,
                            ",\"vllm_xargs\":{\"kv_cache_report_mode\":\"full\"}"),
                    "X-Session-ID",
                    "sess-42");
            final List<EventClient.Message> messages = client.replay(engine, 0, 0);
            final var again = messages.get(1).events().get(0);
            final var fresh = messages.get(1).events().get(1);
            assertNull(again.get("parent_block_hash"));
            assertEquals(
                    EventClient.names(messages.get(0).events().getFirst()),
                    EventClient.names(again));
            assertEquals("session_id", List.copyOf(again.keySet()).getLast());
            assertEquals("sess-42", fresh.get("session_id"));
            assertEquals(3, engine.heldBlocks(0).size());
            assertTrue(engine.heldBlocks(0).values().stream().allMatch(copies -> copies == 1));
        }
    }

    /** Counts copies per chain of blocks, from events alone. */
    private static final class CountingIndex {
        private final Map<Long, List<Object>> chains = new HashMap<>();
        private final Map<List<Object>, Integer> copies = new HashMap<>();

        void apply(Map<String, Object> event) {
            if (event.get("type").equals("BlockRemoved")) {
                copies.computeIfPresent(
                        chains.get(EventClient.names(event).getFirst()),
                        (chain, count) -> count == 1 ? null : count - 1);
                return;
            }
            List<Object> chain = chains.getOrDefault(event.get("parent_block_hash"), List.of());
            final List<?> tokens = (List<?>) event.get("token_ids");
            int at = 0;
            for (Long name : EventClient.names(event)) {
                chain = List.of(chain, List.copyOf(tokens.subList(at, at + 4)));
                at += 4;
                chains.put(name, chain);
                copies.merge(chain, 1, Integer::sum);
            }
        }

        int hit(int[] prompt) {
            List<Object> chain = List.of();
            int blocks = 0;
            while (blocks < (prompt.length - 1) / 4) {
                final List<Long> tokens = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    tokens.add((long) prompt[blocks * 4 + i]);
                }
                chain = List.of(chain, tokens);
                if (!copies.containsKey(chain)) {
                    break;
                }
                blocks++;
            }
            return blocks * 4;
        }
    }

    @Test
    void anIndexThatCountsCopiesPredictsEveryHitUnderEviction() {
        final Random random = new Random(Seeds.next("counting index"));
        try (SimEngine engine = SimEngine.start(config().blocks(30).maxModelLength(120).build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            final CountingIndex index = new CountingIndex();
            final int[] unique = {0};
            client.awaitSubscription(() -> http.complete(tokens(5000 * ++unique[0], 5), 1));
            client.replay(engine, 0, 0).forEach(m -> m.events().forEach(index::apply));
            final List<int[]> history = new ArrayList<>();
            int hits = 0;
            for (int i = 0; i < 150; i++) {
                final int[] prompt = prompt(random, history);
                final long applied = engine.state(0).lastSequence();
                final int predicted = index.hit(prompt);
                final var answer = http.complete(prompt, 1 + random.nextInt(9));
                assertEquals(predicted, Http.cachedTokens(answer), "request " + i);
                hits += predicted > 0 ? 1 : 0;
                history.add(join(prompt, Http.outputIds(answer)));
                for (long next = applied; next < engine.state(0).lastSequence(); next++) {
                    client.next().events().forEach(index::apply);
                }
            }
            assertTrue(hits > 20, "hits=" + hits);
        }
    }

    private static int[] prompt(Random random, List<int[]> history) {
        if (history.isEmpty() || random.nextInt(5) == 0) {
            return random.ints(1 + random.nextInt(40), 0, 1000).toArray();
        }
        final int[] base = history.get(random.nextInt(Math.min(history.size(), 12)));
        final int[] root = Arrays.copyOf(base, 1 + random.nextInt(base.length));
        final int[] cut =
                random.nextBoolean() && root.length >= 4
                        ? Arrays.copyOf(root, root.length / 4 * 4)
                        : root;
        final int[] tail = random.ints(random.nextInt(11), 0, 1000).toArray();
        return Arrays.copyOf(join(cut, tail), Math.min(60, cut.length + tail.length));
    }

    private static int[] join(int[] a, int[] b) {
        return IntStream.concat(IntStream.of(a), IntStream.of(b)).toArray();
    }

    @Test
    void theEventSequenceTellsWhatWasPublishedBeforeTheLookup() {
        try (SimEngine engine = SimEngine.start(config().build())) {
            final Http http = new Http(engine);
            for (int i = 0; i < 3; i++) {
                final var response =
                        http.send("/v1/completions", Http.body(tokens(100 * i, 9), 1, ""));
                assertEquals(
                        Integer.toString(i - 1),
                        response.headers().firstValue("x-sim-event-sequence").orElseThrow());
            }
        }
    }
}
