package io.kvasir.protocol.handoff;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.Supplier;

/**
 * Hand-off members in random bodies, with members twice, names with escapes and values of any form,
 * against the offsets of another parser: what is put in replaces the bytes of its own member alone
 * and is read back as it was, a member that is there twice is refused, and no reader of a member
 * fails on what it finds there.
 */
class HandoffModelTest {
    private static final int TRIALS = Trials.of(120, 3_000);
    private static final JsonFactory PARSERS =
            JsonFactory.builder()
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNumberLength(2_000).build())
                    .build();
    private static final List<String> NAMES =
            List.of(
                    KvTransferParams.FIELD,
                    DisaggregatedParams.FIELD,
                    Bootstrap.HOST,
                    Bootstrap.PORT,
                    Bootstrap.ROOM,
                    "choices");
    private static final List<String> INNER_NAMES =
            List.of(
                    "do_remote_prefill",
                    "do_remote_decode",
                    "remote_engine_id",
                    "remote_request_id",
                    "remote_host",
                    "remote_port",
                    "remote_block_ids",
                    "tp_size",
                    "remote_num_tokens",
                    "transfer_mode",
                    "remote_blocks_expiry_time",
                    "request_type",
                    "opaque_state",
                    "encoded_opaque_state",
                    "finish_reason",
                    DisaggregatedParams.FIELD);
    private static final List<String> VALUES =
            List.of(
                    "null",
                    "true",
                    "\"host\"",
                    "\"\"",
                    "\" \"",
                    "8998",
                    "0",
                    "-1",
                    "65536",
                    "9223372036854775807",
                    "9223372036854775808",
                    "1e400",
                    "9".repeat(1_200),
                    "[1, 2]",
                    "[[1],[2 ,3]]",
                    "[[]]",
                    "[1, [2]]",
                    "[{}]",
                    "[{\"finish_reason\":\"stop\",\"disaggregated_params\":{}}]",
                    "\"eA==\"",
                    "\"\\ud83d\"");

    private Random random;
    private RandomJson generator;

    /** A top-level member as another parser finds it. */
    private record Found(String name, int start, int end) {}

    @Tag("trials")
    @Test
    void handOffsAreSplicedAndReadWhateverABodyHolds() throws IOException {
        final long seed = Seeds.next("HandoffModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            random = new Random(seed + trial);
            generator = new RandomJson(random);
            final String body = object(NAMES, 2);
            try {
                check(body);
            } catch (Throwable e) {
                throw new AssertionError("-Dseed=" + (seed + trial) + ": " + body, e);
            }
        }
    }

    private void check(String text) throws IOException {
        final VerbatimJson body = VerbatimJson.parse(text);
        final List<Found> found = find(body.bytes());
        assertEquals(found.stream().map(Found::name).toList(), body.names());

        final VerbatimJson handoff = VerbatimJson.parse(object(INNER_NAMES, 1));
        final KvTransferParams params = new KvTransferParams(handoff);
        check(
                        body,
                        found,
                        List.of(KvTransferParams.FIELD),
                        List.of(stripped(handoff)),
                        () -> params.spliceInto(body))
                .ifPresent(
                        spliced ->
                                assertEquals(
                                        stripped(handoff),
                                        KvTransferParams.in(spliced).orElseThrow().toString()));
        readsAll(params);

        final DisaggregatedParams trt = new DisaggregatedParams(handoff);
        check(
                        body,
                        found,
                        List.of(DisaggregatedParams.FIELD),
                        List.of(stripped(handoff)),
                        () -> trt.spliceInto(body))
                .ifPresent(
                        spliced ->
                                assertEquals(
                                        stripped(handoff),
                                        DisaggregatedParams.in(spliced).orElseThrow().toString()));
        check(
                handoff,
                find(handoff.bytes()),
                List.of("request_type"),
                List.of("\"generation_only\""),
                () -> trt.generationOnly().json());
        unlessTwice(trt::requestType);
        unlessTwice(() -> state(trt));

        final Bootstrap meeting =
                new Bootstrap("hö\"st", 1 + random.nextInt(65_535), random.nextLong() >>> 1);
        check(
                        body,
                        found,
                        List.of(Bootstrap.HOST, Bootstrap.PORT, Bootstrap.ROOM),
                        List.of("\"hö\\\"st\"", "" + meeting.port(), "" + meeting.room()),
                        () -> meeting.spliceInto(body))
                .ifPresent(spliced -> assertEquals(Optional.of(meeting), Bootstrap.in(spliced)));

        unlessTwice(() -> KvTransferParams.in(body));
        unlessTwice(() -> DisaggregatedParams.in(body));
        unlessTwice(() -> Bootstrap.in(body));
        unlessTwice(() -> TrtLlmHandoff.completeAnswer(body));
        unlessTwice(() -> TrtLlmHandoff.prefillBody(body));
    }

    /** Checks one splice; empty where it is to be refused. */
    private static Optional<VerbatimJson> check(
            VerbatimJson body,
            List<Found> found,
            List<String> names,
            List<String> values,
            Supplier<VerbatimJson> splice) {
        if (names.stream().anyMatch(name -> count(found, name) > 1)) {
            assertThrows(MalformedJsonException.class, splice::get);
            return Optional.empty();
        }
        final VerbatimJson spliced = splice.get();
        assertEquals(expected(body, found, names, values), spliced.toString());
        return Optional.of(spliced);
    }

    private static String expected(
            VerbatimJson body, List<Found> found, List<String> names, List<String> values) {
        final byte[] bytes = body.bytes();
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        int at = 0;
        for (Found member : found) {
            final int which = names.indexOf(member.name);
            if (which >= 0) {
                out.write(bytes, at, member.start - at);
                out.writeBytes(values.get(which).getBytes(StandardCharsets.UTF_8));
                at = member.end;
            }
        }
        final int last = found.isEmpty() ? body.toString().indexOf('{') + 1 : found.getLast().end;
        out.write(bytes, at, last - at);
        boolean first = found.isEmpty();
        for (int i = 0; i < names.size(); i++) {
            if (count(found, names.get(i)) == 0) {
                final String added = "\"" + names.get(i) + "\":" + values.get(i);
                out.writeBytes(((first ? "" : ",") + added).getBytes(StandardCharsets.UTF_8));
                first = false;
            }
        }
        out.write(bytes, last, bytes.length - last);
        return out.toString(StandardCharsets.UTF_8);
    }

    private static long count(List<Found> found, String name) {
        return found.stream().filter(member -> member.name.equals(name)).count();
    }

    private static List<Found> find(byte[] json) throws IOException {
        final List<Found> all = new ArrayList<>();
        try (JsonParser parser = PARSERS.createParser(json)) {
            assertEquals(JsonToken.START_OBJECT, parser.nextToken());
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                final String name = parser.currentName();
                parser.nextToken();
                final int start = (int) parser.currentTokenLocation().getByteOffset();
                parser.skipChildren();
                parser.finishToken();
                all.add(new Found(name, start, (int) parser.currentLocation().getByteOffset()));
            }
        }
        return all;
    }

    private static void readsAll(KvTransferParams params) {
        for (Runnable read :
                List.<Runnable>of(
                        params::doRemotePrefill,
                        params::doRemoteDecode,
                        params::remoteEngineId,
                        params::remoteRequestId,
                        params::remoteHost,
                        params::remotePort,
                        params::remoteBlocks,
                        params::tpSize,
                        params::remoteNumTokens,
                        params::transferMode,
                        params::remoteBlocksExpiryTime)) {
            unlessTwice(read);
        }
    }

    private static void state(DisaggregatedParams params) {
        try {
            params.opaqueState();
        } catch (MalformedJsonException e) {
            throw e;
        } catch (IllegalArgumentException e) {
            assertTrue(e.getMessage().contains("is no base64"), e.getMessage());
        }
    }

    /** Reads; it may be refused only where some object of the text has a member twice. */
    private static void unlessTwice(Runnable read) {
        try {
            read.run();
        } catch (MalformedJsonException e) {
            assertTrue(e.getMessage().startsWith("second "), e.getMessage());
        }
    }

    private static String stripped(VerbatimJson json) {
        return json.toString().strip();
    }

    /** An object with some of the names, some twice, some with escapes, and others. */
    private String object(List<String> names, int depth) {
        final StringBuilder text =
                new StringBuilder(generator.space()).append('{').append(generator.space());
        for (int i = random.nextInt(7); i > 0; i--) {
            text.append(
                            random.nextInt(4) == 0
                                    ? generator.string()
                                    : named(names.get(random.nextInt(names.size()))))
                    .append(generator.space())
                    .append(':')
                    .append(generator.space())
                    .append(value(depth))
                    .append(generator.space())
                    .append(i > 1 ? "," : "")
                    .append(generator.space());
        }
        return text.append('}').append(generator.space()).toString();
    }

    private String named(String name) {
        if (random.nextInt(4) > 0) {
            return "\"" + name + "\"";
        }
        final int at = random.nextInt(name.length());
        return "\"%s\\u%04x%s\""
                .formatted(name.substring(0, at), (int) name.charAt(at), name.substring(at + 1));
    }

    private String value(int depth) {
        return switch (random.nextInt(depth > 0 ? 3 : 2)) {
            case 0 -> VALUES.get(random.nextInt(VALUES.size()));
            case 1 -> generator.value(2);
            default -> object(INNER_NAMES, depth - 1).strip();
        };
    }
}
