package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;

/** Dumps of peers that say what nothing here can hold: it is left out, and never cut to fit. */
class DumpReaderTest {
    private static final String EVENT =
            "{'worker_id':7,'event':{'dp_rank':0,'data':{'stored':{'parent_hash':null,"
                    + "'start_position':0,'blocks':[{'block_hash':21,'tokens_hash':1}]}}}}";

    private final IndexRegistry registry =
            new IndexRegistry(new PrefixIndexConfig(4, 1_024, 1_024), 2);
    private final DumpReader reader = new DumpReader(registry);

    private void read(String... events) throws Exception {
        final String dump = "{'m:g':{'block_size':4,'events':[" + String.join(",", events) + "]}}";
        reader.read(
                new ByteArrayInputStream(dump.replace('\'', '"').getBytes(StandardCharsets.UTF_8)));
    }

    private IndexGroup group() throws Exception {
        return registry.group(new GroupKey("m", "g"));
    }

    @ParameterizedTest(name = "{0}: {1}")
    @CsvSource({
        "worker_id, 18446744073709551616",
        "worker_id, -9223372036854775809",
        "worker_id, 7.0",
        "dp_rank, 4294967296",
        "dp_rank, 2147483648",
        "dp_rank, -1",
        "dp_rank, '''0'''",
        "dp_rank, 0.5",
        "parent_hash, '''21'''",
        "parent_hash, 18446744073709551616",
        "parent_hash, {}",
        "start_position, 4294967296",
        "start_position, 1",
        "start_position, '''0'''",
        "block_hash, 18446744073709551616",
        "block_hash, -9223372036854775809",
        "tokens_hash, 36893488147419103233",
        "tokens_hash, true"
    })
    void anEventWithANumberThatDoesNotFitIsLeftOut(String member, String value) throws Exception {
        try (registry) {
            read(EVENT, EVENT.replaceFirst("'" + member + "':[^,}]*", "'" + member + "':" + value));
            assertEquals(1, reader.loaded());
            assertEquals(1, reader.leftOut());
            final IndexGroup group = group();
            Eventually.holds(() -> group.heldBlocks() == 1);
        }
    }

    @Test
    void theLargestAndTheSmallestNumbersAreTaken() throws Exception {
        try (registry) {
            read(
                    EVENT.replace("7", "18446744073709551615")
                            .replace("21", "18446744073709551615"),
                    EVENT.replace("7", "-9223372036854775808").replace("'dp_rank':0,", ""));
            assertEquals(2, reader.loaded());
            final IndexGroup group = group();
            Eventually.holds(() -> group.heldBlocks() == 2);
            assertEquals(
                    List.of(new Match.Rank(-1, 0), new Match.Rank(Long.MIN_VALUE, 0)),
                    group().match(new long[] {1}, 1).stream().map(Match::rank).toList());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{'events':[E],'block_size':4}",
                "{'events':[E],'routing_group':'g','block_size':4}",
                "{'block_size':4,'events':[E],'routing_group':'g'}",
                "{'block_size':4,'events':[E],'block_size':8}"
            })
    void aGroupThatSaysAfterItsEventsWhoseTheyAreIsRefused(String group) {
        try (registry) {
            final byte[] dump =
                    ("{'m:g':" + group.replace("E", EVENT) + "}")
                            .replace('\'', '"')
                            .getBytes(StandardCharsets.UTF_8);
            final IOException refused =
                    assertThrows(
                            IOException.class, () -> reader.read(new ByteArrayInputStream(dump)));
            assertTrue(refused.getMessage().endsWith("of m:g after its events"));
        }
    }

    @Tag("trials")
    @Test
    void whateverIsOddInADumpItIsRefusedOrEachOfItsEventsIsCounted() throws Exception {
        final long seed = Seeds.next("DumpReaderTest");
        try (registry) {
            for (int trial = 0; trial < Trials.of(200, 3_000); trial++) {
                final String dump = new OddDump(new Random(seed + trial)).text();
                final String words = "-Dseed=" + (seed + trial) + ": " + dump;
                final DumpReader odd = new DumpReader(registry);
                try {
                    odd.read(new ByteArrayInputStream(dump.getBytes(StandardCharsets.UTF_8)));
                    assertEquals(OddDump.events(dump), odd.loaded() + odd.leftOut(), words);
                } catch (IOException | ServiceException e) {
                    // refused, and the next peer is asked
                } catch (RuntimeException e) {
                    throw new AssertionError(words, e);
                }
            }
        }
    }

    /** A dump some of whose values are others, or are missing. */
    private static final class OddDump {
        private static final List<String> VALUES =
                List.of(
                        "null",
                        "{}",
                        "[]",
                        "{'a':1}",
                        "[1]",
                        "[{}]",
                        "'x'",
                        "1.5",
                        "-1",
                        "true",
                        "18446744073709551616");

        private final Random random;

        OddDump(Random random) {
            this.random = random;
            random.nextInt(); // the first ones of close seeds are alike
        }

        static JsonNode json(String text) throws IOException {
            return Json.MAPPER.readTree(text.replace('\'', '"'));
        }

        String text() throws IOException {
            final String group =
                    "{'routing_group':'g','block_size':4,'events':[" + EVENT + "," + EVENT + "]}";
            final JsonNode dump = json("{'m:g':" + group + ",'n:g':" + group + "}");
            for (int i = 1 + random.nextInt(2); i > 0; i--) {
                change(dump);
            }
            return dump.toString();
        }

        /** Changes something at a random depth. */
        private void change(JsonNode in) throws IOException {
            if (in.isEmpty()) {
                return;
            }
            final int at = random.nextInt(in.size());
            final String name =
                    in.isObject()
                            ? in.properties().stream().skip(at).findFirst().get().getKey()
                            : "";
            final JsonNode child = in.isObject() ? in.get(name) : in.get(at);
            if (!child.isEmpty() && random.nextInt(6) > 0) {
                change(child);
            } else if (in instanceof ObjectNode object && random.nextInt(4) == 0) {
                object.remove(name);
            } else if (in instanceof ObjectNode object) {
                object.set(name, value());
            } else {
                ((ArrayNode) in).set(at, value());
            }
        }

        private JsonNode value() throws IOException {
            return json(VALUES.get(random.nextInt(VALUES.size())));
        }

        static long events(String dump) throws IOException {
            long count = 0;
            for (JsonNode group : Json.MAPPER.readTree(dump)) {
                count += group.path("events").size();
            }
            return count;
        }
    }
}
