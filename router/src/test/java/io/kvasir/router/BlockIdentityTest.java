package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.hash.MultimodalHasher;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Prompts whose blocks are more than their tokens: engines that draft with EAGLE, prompts with
 * images. The events are in the array form of the engines: {@code ["BlockStored", hashes, parent,
 * tokens, block size, lora id, medium, lora name, extra keys]}.
 */
class BlockIdentityTest {
    private static final int BLOCK = 16;
    private static final String SAID = ",\"eagle\":1";
    private static final int BLOCKS = 10;
    private static final String DIGEST = "1234567890abcdef" + "7".repeat(48);

    private final SplittableRandom random = new SplittableRandom(11);
    private final int[] prompt = random.ints(BLOCKS * BLOCK + 1, 0, 150_000).toArray();
    private final Decision decision = new Decision();
    private long loraId; // of the events, which say no name
    private final KvRouter router =
            KvRouter.builder()
                    .maxWorkers(80)
                    .maxBlocks(4_096, 65_536)
                    .set(RouterSettings.HASH_SEED, BlockHasher.BASE_SEED)
                    .build();

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    /** A worker whose engine has announced the prompt. */
    private Worker holding(int id, boolean eagle, List<List<String>> objects) throws IOException {
        final Worker worker = worker(id);
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK));
        stream.onMessage(0, stored(eagle, objects, id * 1_000L));
        Eventually.holds("events of " + worker, worker::ready);
        assertEquals(BLOCKS, worker.indexedBlocks());
        return worker;
    }

    /** The whole prompt; with EAGLE as pairs of a token and the one behind it. */
    private byte[] stored(boolean eagle, List<List<String>> objects, long firstHash)
            throws IOException {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final DataOutputStream out = new DataOutputStream(bytes);
        out.writeByte(0x92);
        out.writeByte(0xcb);
        out.writeDouble(1);
        out.writeByte(0x91);
        out.writeByte(0x99);
        text(out, "BlockStored");
        array(out, BLOCKS);
        for (int i = 1; i <= BLOCKS; i++) {
            number(out, firstHash + i);
        }
        out.writeByte(0xc0);
        array(out, BLOCKS * BLOCK);
        for (int i = 0; i < BLOCKS * BLOCK; i++) {
            if (eagle) {
                array(out, 2);
            }
            number(out, prompt[i]);
            if (eagle) {
                number(out, prompt[i + 1]);
            }
        }
        number(out, BLOCK);
        number(out, loraId);
        text(out, "GPU");
        out.writeByte(0xc0);
        array(out, objects.size());
        for (List<String> block : objects) {
            array(out, block.size());
            for (String id : block) {
                array(out, 2); // identifier and offset
                text(out, id);
                number(out, 3);
            }
        }
        return bytes.toByteArray();
    }

    private static void number(DataOutputStream out, long value) throws IOException {
        out.writeByte(0xcf);
        out.writeLong(value);
    }

    private static void array(DataOutputStream out, int length) throws IOException {
        out.writeByte(0xdc);
        out.writeShort(length);
    }

    private static void text(DataOutputStream out, String text) throws IOException {
        out.writeByte(0xd9);
        out.writeByte(text.length());
        out.write(text.getBytes(StandardCharsets.US_ASCII));
    }

    private RouteRequest request(int tokens) {
        return router.newRequest().tokens(prompt, tokens);
    }

    private int overlap(Worker worker, RouteRequest request) throws RouteException {
        router.select(request.pin(worker), decision);
        return decision.overlapBlocks();
    }

    @ParameterizedTest
    @CsvSource({"161, 10", "160, 9", "145, 9", "144, 8", "17, 1", "16, 0", "1, 0", "0, 0"})
    void blocksOfAnEngineThatDraftsWithEagleMatch(int tokens, int blocks)
            throws IOException, RouteException {
        final Worker drafting = holding(1, true, List.of());
        assertEquals(blocks, overlap(drafting, request(tokens)));
        assertEquals(IndexState.EXACT, drafting.state());
        assertTrue(drafting.sourceStatus().learnedEagle());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRouterThatIsGivenTheDumpOfAnotherMatchesEagleBlocksToo(boolean said) throws Exception {
        holding(1, true, List.of());
        final StringBuilder dump = new StringBuilder();
        router.dumpEvents(dump);
        final AtomicReference<EventPlane> plane = new AtomicReference<>();
        try (KvRouter reader =
                KvRouter.builder()
                        .maxWorkers(2)
                        .maxBlocks(4_096, 65_536)
                        .set(RouterSettings.EAGLE_BLOCKS, !said)
                        .eventPlane(
                                members -> {
                                    plane.set(members);
                                    return () -> {};
                                })
                        .build()) {
            final Worker worker =
                    reader.addWorker(
                            WorkerSpec.of(1, "w1", "http://w1")
                                    .onEventPlane(new EventPlaneWorker(1, 0)));
            final String events = said ? dump.toString() : dump.toString().replace(SAID, "");
            assertEquals(said, events.contains(SAID));
            for (String event : events.split(",?\n", -1)) {
                final byte[] json = event.getBytes(StandardCharsets.US_ASCII);
                if (event.startsWith("{")) {
                    plane.get().onMessage(json, 0, json.length);
                }
            }
            Eventually.holds("blocks of " + worker, () -> worker.indexedBlocks() == BLOCKS);
            reader.select(reader.newRequest().tokens(prompt, prompt.length), decision);
            assertEquals(BLOCKS, decision.overlapBlocks());
            assertEquals(said, worker.sourceStatus().learnedEagle());
        }
    }

    @Test
    void anEagleBlockDoesNotMatchWhereTheTokenBehindItIsAnother()
            throws IOException, RouteException {
        final Worker drafting = holding(1, true, List.of());
        final int[] other = prompt.clone();
        other[4 * BLOCK]++;
        assertEquals(3, overlap(drafting, router.newRequest().tokens(other, other.length)));
        final Worker plain = holding(2, false, List.of());
        assertEquals(4, overlap(plain, router.newRequest().tokens(other, other.length)));
    }

    @Test
    void workersThatDraftAndWorkersThatDoNotAreMatchedTogether()
            throws IOException, RouteException {
        for (int id = 1; id <= 36; id += 2) { // enough for sets of either
            holding(id, false, List.of());
            holding(id + 1, true, List.of());
        }
        final Worker none = worker(99);
        final RouteRequest reused = router.newRequest();
        for (Worker worker : router.workers()) {
            reused.reset().tokens(prompt, prompt.length);
            assertEquals(worker == none ? 0 : BLOCKS, overlap(worker, reused), worker::toString);
        }
        router.select(reused.reset().tokens(prompt, prompt.length), decision);
        assertFalse(decision.worker() == none);
    }

    @Test
    void aPromptWithItsImagesMatchesAndOneWithoutDoesNot() throws IOException, RouteException {
        // an image from token 20 to 51, another one from 50 to 63
        final List<List<String>> objects =
                List.of(
                        List.of(),
                        List.of(DIGEST),
                        List.of(DIGEST),
                        List.of("image-2", DIGEST),
                        List.of());
        for (boolean eagle : new boolean[] {false, true}) {
            final Worker worker = holding(eagle ? 2 : 1, eagle, objects);
            final RouteRequest both =
                    request(161).multimodal(DIGEST, 20, 32).multimodal("image-2", 50, 14);
            assertEquals(BLOCKS, overlap(worker, both));
            assertEquals(
                    BLOCKS,
                    overlap(
                            worker,
                            request(161)
                                    .multimodal(MultimodalHasher.objectHash("image-2"), 50, 14)
                                    .multimodal(0x1234567890abcdefL, 20, 32)),
                    "in any order, by hash");
            assertEquals(1, overlap(worker, request(161)), "text alone");
            assertEquals(3, overlap(worker, request(161).multimodal(DIGEST, 20, 32)));
            assertEquals(
                    1,
                    overlap(
                            worker,
                            request(161)
                                    .multimodal("another", 20, 32)
                                    .multimodal("image-2", 50, 14)));
            assertEquals(
                    1,
                    overlap(worker, both.reset().tokens(prompt, prompt.length)),
                    "a request that is reset has no objects");
            assertEquals(1, worker.sourceStatus().multimodalStores());
            assertSame(IndexState.EXACT, worker.state());
        }
    }

    /** vLLM's extra keys of a block cover what its hash covers: the token behind it, too. */
    @Test
    void anImageBehindABlockIsPartOfItWhereTheTokenBehindItIs() throws IOException, RouteException {
        final List<List<String>> objects =
                List.of(List.of(), List.of(), List.of("image"), List.of("image"));
        final Worker drafting = holding(1, true, objects);
        assertEquals(BLOCKS, overlap(drafting, request(161).multimodal("image", 48, 16)));
        assertEquals(2, overlap(drafting, request(161).multimodal("another", 48, 16)));
        final List<List<String>> ofTheirTokens =
                List.of(List.of(), List.of(), List.of(), List.of("image"));
        final Worker plain = holding(2, false, ofTheirTokens);
        assertEquals(BLOCKS, overlap(plain, request(161).multimodal("image", 48, 16)));
        assertEquals(3, overlap(plain, request(161).multimodal("another", 48, 16)));
    }

    @Test
    void bookingsOfOnePromptWithDifferentImagesShareNothingBehindThem() throws RouteException {
        final Worker worker = worker(1);
        final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released
        for (String image : List.of("a", "b", "b")) {
            leases.add(router.reserve(request(160).multimodal(image, 32, 16), decision));
        }
        Eventually.holds("blocks in use", () -> worker.activeBlocks() == 2 + 2 * 8);
        leases.forEach(Lease::close);
    }

    @Test
    void objectsOfNoTokensAreRefused() {
        final RouteRequest request = request(161);
        for (int[] range : new int[][] {{-1, 4}, {3, 0}, {3, -1}, {Integer.MAX_VALUE, 1}}) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> request.multimodal("a", range[0], range[1]));
        }
    }

    @Test
    void selectingWithImagesForEagleAllocatesNothing() throws IOException {
        holding(1, true, List.of());
        holding(2, false, List.of());
        final RouteRequest request = router.newRequest();
        final long[] hashes = {5, -7};
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        2_000,
                        () -> {
                            request.reset().tokens(prompt, prompt.length);
                            for (int i = 0; i < hashes.length; i++) {
                                request.multimodal(hashes[i], 20 + 40 * i, 30);
                            }
                            try {
                                router.select(request, decision);
                            } catch (RouteException e) {
                                throw new AssertionError(Arrays.toString(hashes), e);
                            }
                        }));
    }

    @Test
    void anAdapterThatEventsNameByNumberMatchesByTheNameThatTheWorkerIsSaidToGiveIt()
            throws IOException, RouteException {
        loraId = 7;
        final Worker known = worker(1);
        known.loraNumbers(Map.of(7L, "a")); // before there is a source
        router.openDirect(known, EngineMessages.source(known.name(), BLOCK))
                .onMessage(0, stored(false, List.of(), 1_000));
        Eventually.holds("events of " + known, known::ready);
        assertEquals(BLOCKS, overlap(known, request(161).lora("a")));
        assertEquals(0, overlap(known, request(161)));
        assertEquals(0, overlap(known, request(161).lora("b")));
        assertEquals(IndexState.EXACT, known.state());

        final Worker unknown = worker(2);
        router.openDirect(unknown, EngineMessages.source(unknown.name(), BLOCK))
                .onMessage(0, stored(false, List.of(), 2_000));
        Eventually.holds("events of " + unknown, unknown::ready);
        assertEquals(0, unknown.indexedBlocks());
        assertEquals(0, overlap(unknown, request(161).lora("a")));
        assertEquals(IndexState.DEGRADED, unknown.state());
        unknown.loraNumbers(Map.of(7L, "a"));
        router.openDirect(unknown, EngineMessages.source(unknown.name(), BLOCK))
                .onMessage(0, stored(false, List.of(), 2_000));
        Eventually.holds("its blocks", () -> unknown.indexedBlocks() == BLOCKS);
        assertEquals(BLOCKS, overlap(unknown, request(161).lora("a")));
    }
}
