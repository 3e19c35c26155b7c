package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * Random bodies with members given several times, in any order, form and coding: whatever the
 * gateway puts in or takes out, a worker that lets the last one count reads that and nothing else.
 */
class EditedBodiesModelTest {
    private static final int TRIALS = Trials.of(2_500, 50_000);
    private static final String[] BLANKS = {"", "", "", " ", "\n", "\t ", "\r\n"};
    private static final String[] OFF = {"false", "null", "0", "\"no\"", "0.0"};
    private static final String EVERY_CHUNK = "continuous_usage_stats";
    private static final List<String> NOTHING = List.of("null", "false");
    private static final String[] VALUES = {
        "1",
        "-0.5e3",
        "\"}{\\\"\"",
        "[1,{\"stream_options\":{}}]",
        "{}",
        "null",
        "NaN",
        "-Infinity",
        "1e999",
        "\"\\ud800\"",
        "\"ä\\u00e4🙂\""
    };
    private static final Charset[] CODINGS = {
        StandardCharsets.UTF_8,
        StandardCharsets.UTF_8,
        StandardCharsets.UTF_8,
        StandardCharsets.UTF_16LE,
        StandardCharsets.UTF_16BE,
        StandardCharsets.UTF_32BE
    };

    @Tag("trials")
    @Test
    void aWorkerReadsWhatWasPutInOrTakenOutAndNothingElse() throws Exception {
        final long seed = Seeds.next("EditedBodiesModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Random random = new Random(seed + trial);
            final String text = body(random);
            try {
                check(coded(text, random));
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError("seed " + (seed + trial) + ": " + text, e);
            }
        }
    }

    private static void check(byte[] body) throws Exception {
        final InferenceRequest request =
                RequestParser.parse(InferenceRequest.Route.COMPLETIONS, body);
        final ObjectNode expected = tree(body);
        byte[] edited = body;
        if (!request.includeUsage) {
            edited = request.bodyWithUsage();
            final ObjectNode options =
                    expected.get("stream_options") instanceof ObjectNode given
                            ? given
                            : expected.putObject("stream_options");
            options.put("include_usage", true);
            if (!NOTHING.contains(options.path(EVERY_CHUNK).asText("null"))) {
                options.remove(EVERY_CHUNK); // alone it asks for nothing
            }
            assertEquals(expected, tree(edited));
            assertTrue(
                    RequestParser.parse(InferenceRequest.Route.COMPLETIONS, edited).includeUsage);
        }
        edited = InferenceRequest.withoutOverride(edited);
        expected.remove(InferenceRequest.ROUTER_OVERRIDE);
        assertEquals(expected, tree(edited));
        final boolean announces =
                expected.get(InferenceRequest.EXTRA_ARGUMENTS) instanceof ObjectNode arguments
                        && arguments.has(InferenceRequest.REPORT_MODE);
        assertEquals(announces, request.setsAnnouncements);
        if (announces) {
            edited = InferenceRequest.withoutAnnouncements(edited);
            ((ObjectNode) expected.get(InferenceRequest.EXTRA_ARGUMENTS))
                    .remove(InferenceRequest.REPORT_MODE);
            assertEquals(expected, tree(edited));
        }
        edited = TenantSalt.put(edited, request.cacheSalt != null, "salt");
        expected.put("cache_salt", "salt");
        assertEquals(expected, tree(edited));
    }

    private static ObjectNode tree(byte[] body) throws Exception {
        return (ObjectNode) Json.MAPPER.readTree(body);
    }

    private static byte[] coded(String text, Random random) {
        final String marked = random.nextInt(8) == 0 ? "\uFEFF" + text : text;
        return marked.getBytes(CODINGS[random.nextInt(CODINGS.length)]);
    }

    private static String body(Random random) {
        final List<String> members = new ArrayList<>();
        members.add(member("prompt", "\"a\"", random));
        members.add(member("stream", "true", random));
        for (int i = random.nextInt(4); i > 0; i--) {
            members.add(member("stream_options", options(random), random));
        }
        for (int i = random.nextInt(3); i > 0; i--) {
            members.add(member(InferenceRequest.ROUTER_OVERRIDE, "{\"a\":[1]}", random));
        }
        for (int i = random.nextInt(3); i > 0; i--) {
            members.add(member("other" + random.nextInt(2), value(random), random));
        }
        for (int i = random.nextInt(3); i > 0; i--) {
            members.add(member(InferenceRequest.EXTRA_ARGUMENTS, arguments(random), random));
        }
        if (random.nextInt(4) == 0) {
            members.add(member("cache_salt", random.nextBoolean() ? "null" : "\"s\"", random));
        }
        Collections.shuffle(members, random);
        return blank(random) + object(members, random) + blank(random);
    }

    private static String options(Random random) {
        if (random.nextInt(4) == 0) {
            return "null";
        }
        final List<String> members = new ArrayList<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            members.add(
                    switch (random.nextInt(5)) {
                        case 0 -> member("include_usage", "true", random);
                        case 2 -> member(EVERY_CHUNK, random.nextBoolean() + "", random);
                        case 1 -> member("other", value(random), random);
                        default -> member("include_usage", OFF[random.nextInt(OFF.length)], random);
                    });
        }
        return object(members, random);
    }

    private static String arguments(Random random) {
        if (random.nextInt(4) == 0) {
            return value(random);
        }
        final List<String> members = new ArrayList<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            members.add(
                    member(
                            random.nextBoolean() ? InferenceRequest.REPORT_MODE : "other",
                            random.nextBoolean() ? "\"full\"" : value(random),
                            random));
        }
        return object(members, random);
    }

    private static String object(List<String> members, Random random) {
        return "{" + blank(random) + String.join(",", members) + "}";
    }

    /** The name may be written with an escape. */
    private static String member(String name, String value, Random random) {
        final String written =
                random.nextInt(5) == 0
                        ? "\\u%04x".formatted((int) name.charAt(0)) + name.substring(1)
                        : name;
        return blank(random)
                + '"'
                + written
                + '"'
                + blank(random)
                + ':'
                + blank(random)
                + value
                + blank(random);
    }

    private static String value(Random random) {
        return VALUES[random.nextInt(VALUES.length)];
    }

    private static String blank(Random random) {
        return BLANKS[random.nextInt(BLANKS.length)];
    }
}
