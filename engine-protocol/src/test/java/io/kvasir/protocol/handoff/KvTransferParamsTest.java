package io.kvasir.protocol.handoff;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.json.JsonMapper;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;

class KvTransferParamsTest {
    private static final JsonMapper MAPPER = new JsonMapper();

    private static KvTransferParams parse(String json) {
        return new KvTransferParams(VerbatimJson.parse(json));
    }

    /** Every transfer object in the recording, of requests and of answers. */
    private static List<KvTransferParams> recorded() {
        final List<KvTransferParams> all = new ArrayList<>();
        for (VerbatimJson line : Captures.vllm()) {
            line.object("request").flatMap(KvTransferParams::in).ifPresent(all::add);
            line.object("response").flatMap(KvTransferParams::in).ifPresent(all::add);
        }
        return all;
    }

    @Test
    void recordedObjectsComeBackByteForByte() {
        assertEquals(14, recorded().size());
        for (KvTransferParams params : recorded()) {
            assertArrayEquals(
                    params.json().bytes(), VerbatimJson.parse(params.json().bytes()).bytes());
            final VerbatimJson body = VerbatimJson.parse("{\"model\":\"m\",\"prompt\":[1,2 ]}");
            final VerbatimJson spliced = params.spliceInto(body);
            assertEquals(params, KvTransferParams.in(spliced).orElseThrow());
            assertEquals(body, spliced.edit().remove(KvTransferParams.FIELD).apply());
        }
    }

    @Test
    void aRecordedPrefillAnswerIsReadFieldByField() {
        final KvTransferParams params =
                Captures.vllm()
                        .get(1)
                        .object("response")
                        .flatMap(KvTransferParams::in)
                        .orElseThrow();
        assertTrue(params.doRemotePrefill());
        assertFalse(params.doRemoteDecode());
        assertEquals(Optional.of("f5edcbd0-479d-49fe-bda7-5da790a9bdd6"), params.remoteEngineId());
        assertEquals(
                Optional.of("cmpl-pd-completions-text-32f780fc-0-a81dad0b"),
                params.remoteRequestId());
        assertEquals(Optional.of("127.0.0.1"), params.remoteHost());
        assertEquals(OptionalInt.of(5600), params.remotePort());
        assertEquals(
                Optional.of(
                        new RemoteBlocks(List.of(List.of(9, 10, 11, 12, 13, 14, 15, 16)), true)),
                params.remoteBlocks());
        assertEquals(OptionalInt.of(1), params.tpSize());
        assertEquals(OptionalInt.of(225), params.remoteNumTokens());
        assertEquals(Optional.of("pull"), params.transferMode());
        assertEquals(OptionalDouble.empty(), params.remoteBlocksExpiryTime());
    }

    @Test
    void recordedDecodeRequestsCarryThePrefillAnswerUnchanged() {
        final List<VerbatimJson> lines = Captures.vllm();
        for (int i = 1; i < 12; i += 3) {
            final KvTransferParams answer =
                    lines.get(i).object("response").flatMap(KvTransferParams::in).orElseThrow();
            final VerbatimJson decode = lines.get(i + 1).object("request").orElseThrow();
            assertEquals(answer, KvTransferParams.in(decode).orElseThrow());
            final VerbatimJson client = decode.edit().remove(KvTransferParams.FIELD).apply();
            assertEquals(
                    decode.toString().replace(" ", ""),
                    VllmHandoff.decodeBody(client, answer).toString().replace(" ", ""));
        }
    }

    @Test
    void thePrefillBodyIsTheRecordedOne() throws Exception {
        final List<VerbatimJson> lines = Captures.vllm();
        for (int i = 1; i < 12; i += 3) {
            final VerbatimJson client =
                    lines.get(i + 1)
                            .object("request")
                            .orElseThrow()
                            .edit()
                            .remove(KvTransferParams.FIELD)
                            .apply();
            assertEquals(
                    MAPPER.readTree(lines.get(i).object("request").orElseThrow().toString()),
                    MAPPER.readTree(VllmHandoff.prefillBody(client).toString()));
        }
    }

    @Test
    void aStreamingClientIsPrefilledWithoutStreamAndEveryTokenLimitIsOne() {
        assertEquals(
                "{\"max_completion_tokens\": 1, \"seed\": 1.0, \"stream\": false,\"max_tokens\":1,"
                        + "\"kv_transfer_params\":"
                        + KvTransferParams.prefillRequest()
                        + "}",
                VllmHandoff.prefillBody(
                                VerbatimJson.parse(
                                        "{\"max_completion_tokens\": 500, \"seed\": 1.0,"
                                                + " \"stream\": true, \"stream_options\":"
                                                + " {\"include_usage\": true}}"))
                        .toString());
    }

    @Test
    void thePrefillRequestAsksForAHandOffAndNamesNobody() {
        final KvTransferParams params = KvTransferParams.prefillRequest();
        assertTrue(params.doRemoteDecode());
        assertFalse(params.doRemotePrefill());
        assertEquals(Optional.empty(), params.remoteEngineId());
        assertEquals(OptionalInt.empty(), params.remotePort());
        assertEquals(Optional.empty(), params.remoteBlocks());
        assertEquals(6, params.json().names().size());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "[1,2,3]     | 3 | false | 1",
                "[]          | 0 | false | 1",
                "[[1],[2,3]] | 3 | true  | 2",
                "[[]]        | 0 | true  | 1",
            })
    void blocksAreReadFlatOrPerGroup(String json, int count, boolean grouped, int groups) {
        final RemoteBlocks blocks =
                parse("{\"remote_block_ids\":" + json + "}").remoteBlocks().orElseThrow();
        assertEquals(count, blocks.count());
        assertEquals(grouped, blocks.grouped());
        assertEquals(groups, blocks.groups().size());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "null",
                "3",
                "\"1,2\"",
                "[1,[2]]",
                "[[1],2]",
                "[1.5]",
                "[\"a\"]",
                "[99999999999]",
                "{}"
            })
    void blocksOfAnUnknownFormAreAbsentToTheViewAndKeptInTheBytes(String json) {
        final KvTransferParams params = parse("{\"remote_block_ids\":" + json + "}");
        assertEquals(Optional.empty(), params.remoteBlocks());
        assertEquals("{\"remote_block_ids\":" + json + "}", params.toString());
    }

    @Test
    void fieldsOfAnotherKindAreAbsentToTheView() {
        final KvTransferParams params =
                parse(
                        "{\"remote_port\":\"5600\",\"remote_host\":7,\"do_remote_prefill\":\"true\","
                            + "\"tp_size\":1.5,\"remote_blocks_expiry_time\":12.25}");
        assertEquals(OptionalInt.empty(), params.remotePort());
        assertEquals(Optional.empty(), params.remoteHost());
        assertFalse(params.doRemotePrefill());
        assertEquals(OptionalInt.empty(), params.tpSize());
        assertEquals(OptionalDouble.of(12.25), params.remoteBlocksExpiryTime());
    }

    @Test
    void aBodyWithoutTheObjectHasNone() {
        assertEquals(Optional.empty(), KvTransferParams.in(VerbatimJson.parse("{}")));
        assertEquals(
                Optional.empty(),
                KvTransferParams.in(VerbatimJson.parse("{\"kv_transfer_params\":null}")));
    }
}
