package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.testsupport.NaivePrefixIndex;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Recordings of real publishers: every event is applied, and to the same effect as by an oracle.
 */
class CaptureTest {
    private static final int SLOT = 1;
    private static final PrefixIndexConfig SIZES = new PrefixIndexConfig(4, 2_048, 2_048);

    @ParameterizedTest
    @CsvSource({
        "vllm-0.32.0-sha256int.zcap, 32, 0",
        "vllm-0.32.0-sha256int.replay.zcap, 32, 0",
        "vllm-0.32.0-sha256int.replay-from3.zcap, 32, 3",
        "vllm-0.32.0-sha256cbor-bytes-lora.zcap, 32, 0",
        "vllm-0.32.0-sha256cbor-bytes-lora.replay.zcap, 32, 0",
        "vllm-0.32.0-sha256cbor-bytes-lora.replay-from3.zcap, 32, 3",
        "vllm-0.32.0-sha256cbor-evict.zcap, 32, 0",
        "vllm-0.32.0-sha256cbor-evict.replay.zcap, 32, 0",
        "vllm-0.32.0-sha256cbor-evict.replay-from3.zcap, 32, 3",
        "sglang-0.5.23-bs16.zcap, 16, 1",
        "sglang-0.5.23-bs16.replay.zcap, 16, 0",
        "sglang-0.5.23-bs16.replay-from3.zcap, 16, 3",
        "llmdsim-map.zcap, 16, 1",
        "llmdsim-map.replay.zcap, 16, 1",
        "llmdsim-map.replay-from3.zcap, 16, 3",
        "llmdsim-array.zcap, 16, 1",
        "dyn-1.6.1-mocker-native-zmq.zcap, 16, 0",
        "dyn-1.6.1-mocker-native-zmq.replay.zcap, 16, 0",
        "dyn-1.6.1-mocker-native-zmq.replay-from3.zcap, 16, 3",
        "pd-nixl-P.zcap, 32, 1",
        "pd-nixl-D.zcap, 32, 1"
    })
    void theIndexEndsAsTheOracleSays(String capture, int blockSize, long first) throws IOException {
        final List<ZcapRecord> messages = Captures.messages(capture);
        final NaivePrefixIndex naive = new NaivePrefixIndex(2_048, 2_048);
        final OracleDecoder oracle = new OracleDecoder(naive, SLOT, blockSize);
        try (PrefixIndex index = new PrefixIndex(SIZES);
                EngineStream stream =
                        new EngineStream(
                                SourceConfig.of(capture, SLOT, blockSize, "")
                                        .withRemovals(RemovalRule.PHYSICAL),
                                new IndexApplier(index))) {
            assertEquals(first, messages.getFirst().sequence());
            for (ZcapRecord message : messages) {
                stream.onMessage(message.sequence(), message.payload());
                oracle.apply(message.payload());
                assertSameBlocks(naive, index, capture + " after " + message.sequence());
            }
            final SourceStatus status = stream.status();
            final int events = oracle.counts().values().stream().mapToInt(n -> n).sum();
            assertEquals(events, status.events());
            assertEquals(Map.of(), status.drops());
            assertEquals(blockSize, status.learnedBlockSize());
            assertEquals(messages.getLast().sequence(), status.lastSequence());
            assertEquals(messages.getLast().sequence(), index.appliedSequence(SLOT));
            assertEquals(
                    oracle.counts().getOrDefault("BlockStored UNKNOWN_PARENT", 0).longValue(),
                    status.unknownParents());
            assertEquals(0, status.gaps());
            assertTrue(status.events() > 0);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "vllm-0.32.0-sha256int",
                "vllm-0.32.0-sha256cbor-bytes-lora",
                "vllm-0.32.0-sha256cbor-evict",
                "llmdsim-map",
                "dyn-1.6.1-mocker-native-zmq"
            })
    void aReplayFromTheStartGivesTheLiveIndex(String capture) {
        final int blockSize = capture.startsWith("vllm") ? 32 : 16;
        assertEquals(
                blocksAfter(capture + ".zcap", blockSize),
                blocksAfter(capture + ".replay.zcap", blockSize));
    }

    private static List<String> blocksAfter(String capture, int blockSize) {
        try (PrefixIndex index = new PrefixIndex(SIZES);
                EngineStream stream =
                        new EngineStream(
                                SourceConfig.of(capture, SLOT, blockSize, ""),
                                new IndexApplier(index))) {
            Captures.messages(capture).forEach(m -> stream.onMessage(m.sequence(), m.payload()));
            return blocks(index);
        }
    }

    @Test
    void loadReportsAreNoEventsAndMoveNoSequence() {
        try (PrefixIndex index = new PrefixIndex(SIZES);
                EngineStream stream =
                        new EngineStream(
                                SourceConfig.of("load", SLOT, 16, ""), new IndexApplier(index))) {
            final List<ZcapRecord> messages = Captures.messages("sglang-0.5.23-load.zcap");
            messages.forEach(m -> stream.onMessage(m.sequence(), m.payload()));

            assertEquals(
                    Map.of("ignored_message", (long) messages.size()), stream.status().drops());
            assertEquals(-1, stream.status().lastSequence());
            assertEquals(IndexState.LOADING, stream.state());
        }
    }

    @Test
    void loadReportsGoToWhoWantsThemAndAreIgnoredNoMore() {
        try (PrefixIndex index = new PrefixIndex(SIZES);
                EngineStream stream =
                        new EngineStream(
                                SourceConfig.of("load", SLOT, 16, ""), new IndexApplier(index))) {
            final List<String> reports = new ArrayList<>();
            stream.onLoad((number, load) -> reports.add(number + ": " + load.running()));
            final List<ZcapRecord> messages = Captures.messages("sglang-0.5.23-load.zcap");
            messages.forEach(m -> stream.onMessage(m.sequence(), m.payload()));
            stream.onMessage(99, new byte[] {(byte) 0x91, (byte) 0xa1, 'x'});

            assertEquals(messages.size(), reports.size());
            assertEquals(List.of("3: 0", "4: 0", "5: 0", "6: 4"), reports.subList(0, 4));
            assertEquals(Map.of("ignored_message", 1L), stream.status().drops());
            assertEquals(-1, stream.status().lastSequence());
            assertEquals(IndexState.LOADING, stream.state());
        }
    }

    static void assertSameBlocks(NaivePrefixIndex naive, PrefixIndex index, String where) {
        final List<String> expected = new ArrayList<>();
        for (NaivePrefixIndex.Held held : naive.held()) {
            final long[] path = held.path().stream().mapToLong(Long::longValue).toArray();
            BlockHasher.sequenceHashes(path, path.length, path);
            expected.add(
                    line(held.slot(), held.engineHash(), path[path.length - 1], held.copies()));
        }
        expected.sort(null);
        assertEquals(expected, blocks(index), where);
    }

    private static List<String> blocks(PrefixIndex index) {
        final List<String> lines = new ArrayList<>();
        index.forEach(
                (slot, engine, sequence, copies) ->
                        lines.add(line(slot, engine, sequence, copies)));
        lines.sort(null);
        return lines;
    }

    private static String line(int slot, long engine, long sequence, long copies) {
        return slot
                + " "
                + Long.toHexString(engine)
                + " "
                + Long.toHexString(sequence)
                + " x"
                + copies;
    }
}
