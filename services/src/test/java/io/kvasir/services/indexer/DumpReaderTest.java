package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.services.http.GroupKey;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Dumps of peers that say what nothing here can hold: it is left out, and never cut to fit. */
class DumpReaderTest {
    private static final String EVENT =
            "{'worker_id':7,'event':{'dp_rank':0,'data':{'stored':{'parent_hash':null,"
                    + "'start_position':0,'blocks':[{'block_hash':21,'tokens_hash':1}]}}}}";

    private final IndexRegistry registry =
            new IndexRegistry(new PrefixIndexConfig(4, 1_024, 1_024), 1);
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
}
