package io.kvasir.sim.batch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.events.EventBatch;
import io.kvasir.sim.events.EventPublisher;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Runs what a real vLLM 0.32 was asked through the simulated scheduler and compares their events.
 */
class RealEngineTraceTest {
    private static final Path CAPTURES = Path.of("src/test/resources/captures");

    /** Messages between two marks. */
    private record Section(String mark, List<List<Object>> batches, List<byte[]> payloads) {
        List<Map<String, Object>> events() {
            return batches.stream().flatMap(b -> events(b).stream()).toList();
        }

        @SuppressWarnings("unchecked")
        private static List<Map<String, Object>> events(List<Object> batch) {
            return (List<Map<String, Object>>) batch.get(1);
        }
    }

    /** Gives the same number to blocks with the same history, however an engine names them. */
    private static final class Chains {
        private static final Map<List<Object>, Integer> NUMBERS = new HashMap<>();
        private final Map<Object, Integer> named = new HashMap<>();

        /** Lines that say what happened, without names. */
        List<String> tell(List<Map<String, Object>> events, int blockSize) {
            final List<String> lines = new ArrayList<>();
            for (Map<String, Object> event : events) {
                final String type = (String) event.get("type");
                if (type.equals("BlockStored")) {
                    lines.add("stored " + stored(event, blockSize));
                } else if (type.equals("BlockRemoved")) {
                    lines.add(
                            "removed "
                                    + EventClient.names(event).stream().map(named::get).toList());
                } else {
                    lines.add(type);
                }
            }
            return lines;
        }

        private List<Integer> stored(Map<String, Object> event, int blockSize) {
            final List<Integer> numbers = new ArrayList<>();
            Integer parent = named.get(event.get("parent_block_hash"));
            final List<?> tokens = (List<?>) event.get("token_ids");
            final List<?> extra = (List<?>) event.get("extra_keys");
            int at = 0;
            for (Object name : EventClient.names(event)) {
                final List<Object> key =
                        Arrays.asList(
                                parent,
                                List.copyOf(tokens.subList(at * blockSize, (at + 1) * blockSize)),
                                extra.get(at));
                parent = NUMBERS.computeIfAbsent(key, k -> NUMBERS.size());
                named.put(name, parent);
                numbers.add(parent);
                at++;
            }
            return numbers;
        }
    }

    /** One rank without sockets and clock. */
    private static final class Engine implements EventPublisher {
        private final List<Gate> touched = new ArrayList<>();
        private final SimConfig config;
        private final BlockNamer namer;
        private final RankScheduler rank;
        private List<List<Object>> published = new ArrayList<>();
        private long now;

        Engine(int blockSize, int blocks) {
            this.config =
                    SimConfig.builder()
                            .blockSize(blockSize)
                            .blocks(blocks)
                            .maxModelLength(blockSize * blocks)
                            .build();
            this.namer = new BlockNamer(0, 1, blockSize);
            this.rank =
                    new RankScheduler(
                            0,
                            config,
                            new VirtualClock(),
                            touched,
                            NoCarrier.INSTANCE,
                            new InjectedFaults(config.handoff()),
                            null);
            rank.begin(0, this);
        }

        @Override
        public void publish(int r, long sequence, byte[] payload, boolean lost) {
            published.add(EventClient.batch(payload));
        }

        SimRequest submit(int[] sequence, int promptTokens, String salt) {
            final SimRequest request =
                    new SimRequest(
                            new Completion(sequence, promptTokens, "", "length", null),
                            namer,
                            new Labels(null, salt, null),
                            false,
                            new Gate());
            request.arrivalNs = now;
            rank.submit(request);
            return request;
        }

        void runDry() {
            now += 1L << 40;
            assertEquals(RankScheduler.NOTHING_TO_DO, rank.advance(now));
        }

        Section take(String mark) {
            final Section section = new Section(mark, published, List.of());
            published = new ArrayList<>();
            return section;
        }
    }

    @Test
    void eventsAreThoseOfARecordedServerToTheLastEviction() throws IOException {
        final List<Section> sections =
                sections(CAPTURES.resolve("vllm-0.32.0-sha256cbor-evict.zcap"));
        final List<JsonNode> requests =
                lines(CAPTURES.resolve("vllm-0.32.0-sha256cbor-evict.http.jsonl"));
        final Engine engine = new Engine(32, 25); // 26 blocks, of which vLLM keeps one for itself
        final Chains real = new Chains();
        final Chains simulated = new Chains();
        for (int i = 0; i < requests.size(); i++) {
            final Section section = sections.get(i);
            final JsonNode request = requests.get(i);
            if (request.get("path").textValue().equals("/reset_prefix_cache")) {
                engine.rank.resetCache(false);
            } else {
                final int prompt = request.at("/response/usage/prompt_tokens").intValue();
                final int total = request.at("/response/usage/total_tokens").intValue();
                final JsonNode salt = request.at("/request/cache_salt");
                engine.submit(
                        sequence(request, section, total),
                        prompt,
                        salt.isMissingNode() ? null : salt.textValue());
                engine.runDry();
            }
            assertEquals(
                    toldByBatch(section, real),
                    toldByBatch(engine.take(section.mark()), simulated),
                    section.mark());
        }
    }

    /** Tokens of prompt and output; output that fills no block is of no consequence. */
    private static int[] sequence(JsonNode request, Section section, int total) {
        final JsonNode prompt = request.at("/request/prompt");
        final int[] stored =
                section.events().stream()
                        .filter(e -> e.get("type").equals("BlockStored"))
                        .flatMap(e -> ((List<?>) e.get("token_ids")).stream())
                        .mapToInt(id -> ((Long) id).intValue())
                        .toArray();
        final boolean fromStart = prompt.isMissingNode() || total / 32 > prompt.size() / 32;
        return fromStart ? Arrays.copyOf(stored, total) : Arrays.copyOf(ids(prompt), total);
    }

    @Test
    void hitsAndEventsAreThoseOfALongGoldenTraceWithBursts() throws IOException {
        final Path captures = shared().resolve("captures");
        final Path events = captures.resolve("golden-vllm-0.32.0-bs32-evict.zcap");
        assumeTrue(Files.exists(events), "skipped: no " + events);
        final List<Section> sections = sections(events);
        final List<JsonNode> requests =
                lines(captures.resolve("golden-vllm-0.32.0-bs32-evict.jsonl"));
        final Engine engine = new Engine(32, 39);
        final Chains real = new Chains();
        final Chains simulated = new Chains();
        int exact = 0;
        for (Section section : sections) {
            final JsonNode request = requests.get(exact);
            final boolean burst = request.has("burst_before");
            if (burst) {
                for (JsonNode prompt : request.get("prompts")) {
                    engine.submit(
                            Arrays.copyOf(ids(prompt), prompt.size() + 2), prompt.size(), null);
                }
                engine.runDry();
            } else {
                final int[] prompt = ids(request.get("prompt"));
                final SimRequest sent =
                        engine.submit(
                                concat(prompt, ids(request.get("output_ids"))),
                                prompt.length,
                                null);
                engine.runDry();
                assertEquals(
                        request.get("cached_tokens").intValue(), sent.cachedTokens, section.mark());
            }
            final List<String> expected = told(section.events(), real);
            final List<String> actual = told(engine.take(section.mark()).events(), simulated);
            if (burst && !expected.equals(actual)) {
                // the recorded clients were slower than each other: another story from here on
                break;
            }
            assertEquals(expected, actual, section.mark());
            exact++;
        }
        System.out.println("golden trace: exact for " + exact + " of " + sections.size());
        assertTrue(exact > 200, "exact only for " + exact);
    }

    @Test
    void capturedMessagesAreEncodedToTheSameBytes() throws IOException {
        int messages = 0;
        for (Section section : sections(CAPTURES.resolve("vllm-0.32.0-sha256cbor-evict.zcap"))) {
            for (byte[] payload : section.payloads()) {
                assertArrayEquals(payload, encode(EventClient.batch(payload)));
                messages++;
            }
        }
        assertEquals(17, messages);
    }

    private static byte[] encode(List<Object> batch) {
        final EventBatch out = new EventBatch(true);
        for (Map<String, Object> event : Section.events(batch)) {
            switch ((String) event.get("type")) {
                case "BlockStored" -> stored(out, event);
                case "BlockRemoved" -> out.removed(EventClient.names(event).getFirst());
                default -> out.cleared();
            }
        }
        return out.finish((Double) batch.get(0), ((Long) batch.get(2)).intValue());
    }

    private static void stored(EventBatch out, Map<String, Object> event) {
        final int blockSize = ((Long) event.get("block_size")).intValue();
        final long[] names = EventClient.names(event).stream().mapToLong(Long::longValue).toArray();
        final int[] tokens =
                ((List<?>) event.get("token_ids"))
                        .stream().mapToInt(id -> ((Long) id).intValue()).toArray();
        final Object parent = event.get("parent_block_hash");
        final Object salt = ((List<?>) event.get("extra_keys")).getFirst();
        final int before = parent == null ? 0 : 1;
        final long[] chain = new long[before + names.length];
        System.arraycopy(names, 0, chain, before, names.length);
        if (parent != null) {
            chain[0] = (Long) parent;
        }
        out.stored(
                chain,
                before,
                chain.length,
                concat(new int[before * blockSize], tokens),
                blockSize,
                new Labels(null, salt == null ? null : (String) ((List<?>) salt).getFirst(), null));
    }

    private static List<List<String>> toldByBatch(Section section, Chains chains) {
        return section.batches().stream().map(b -> told(Section.events(b), chains)).toList();
    }

    private static List<String> told(List<Map<String, Object>> events, Chains chains) {
        return chains.tell(events, 32);
    }

    private static int[] concat(int[] a, int[] b) {
        return IntStream.concat(IntStream.of(a), IntStream.of(b)).toArray();
    }

    private static int[] ids(JsonNode array) {
        final int[] ids = new int[array.size()];
        Arrays.setAll(ids, i -> array.get(i).intValue());
        return ids;
    }

    private static List<JsonNode> lines(Path file) throws IOException {
        try (Stream<String> lines = Files.lines(file)) {
            return lines.map(Http::tree).toList();
        }
    }

    /** Sections of a capture, one per mark. */
    private static List<Section> sections(Path file) throws IOException {
        final List<Section> sections = new ArrayList<>();
        final DataInputStream in =
                new DataInputStream(new ByteArrayInputStream(Files.readAllBytes(file)));
        assertEquals("ZCAP0001", new String(in.readNBytes(8), StandardCharsets.US_ASCII));
        while (in.available() > 0) {
            in.readLong();
            final int source = in.readUnsignedByte();
            final List<byte[]> frames = new ArrayList<>();
            for (int left = in.readUnsignedByte(); left > 0; left--) {
                frames.add(in.readNBytes(in.readInt()));
            }
            if (source == 255) {
                final String mark = new String(frames.getFirst(), StandardCharsets.UTF_8);
                sections.add(new Section(mark, new ArrayList<>(), new ArrayList<>()));
            } else {
                sections.getLast().batches().add(EventClient.batch(frames.get(2)));
                sections.getLast().payloads().add(frames.get(2));
            }
        }
        return sections;
    }

    private static Path shared() {
        final Path root = Path.of(System.getProperty("kvasir.root", ".."));
        return Stream.of(root.resolve("../shared"), root.resolve("../../shared"))
                .filter(Files::isDirectory)
                .findFirst()
                .orElse(root.resolve("../shared"));
    }
}
