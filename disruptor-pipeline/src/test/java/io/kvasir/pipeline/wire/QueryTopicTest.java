package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;

class QueryTopicTest {
    private static final QueryTopic QUERY =
            new QueryTopic(-2, 258, new RecoveryQuery(7, 1, 90, RecoveryQuery.NO_END));

    @Test
    void theBytesAreAsTheyAreWrittenDown() {
        assertEquals(
                "6b762d7175657279" // kv-query
                        + "fffffffffffffffe"
                        + "0000000000000102"
                        + HexFormat.of().formatHex(QUERY.query().toBytes()),
                HexFormat.of().formatHex(QUERY.toBytes()));
    }

    @Test
    void whatIsWrittenIsRead() {
        final byte[] topic = QUERY.toBytes();
        assertEquals(QUERY, QueryTopic.readOrNull(topic));
        assertTrue(QueryTopic.isAnswerTo(topic, 0, topic.length));
        assertEquals(258, QueryTopic.queryId(topic, 0, -2));
        assertEquals(0, QueryTopic.queryId(topic, 0, -3), "another one has asked");
    }

    @Test
    void otherTopicsAreNone() {
        for (String topic :
                new String[] {"", "kv-events", "kv-query", "kv-query.1234567890123456"}) {
            assertNull(QueryTopic.readOrNull(topic.getBytes(StandardCharsets.UTF_8)), topic);
        }
        final byte[] events = "kv-events".getBytes(StandardCharsets.UTF_8);
        assertFalse(QueryTopic.isAnswerTo(events, 0, events.length));
        assertNull(QueryTopic.readOrNull(Arrays.copyOf(QUERY.toBytes(), 1 << 20)), "too long");
    }

    @Test
    void whateverTheBytesAreNothingIsThrown() {
        final Random random = new Random(Seeds.next("QueryTopic"));
        for (int i = 0; i < 20_000; i++) {
            final byte[] topic = Arrays.copyOf(QUERY.toBytes(), random.nextInt(80));
            for (int changes = random.nextInt(4); changes > 0 && topic.length > 8; changes--) {
                topic[8 + random.nextInt(topic.length - 8)] = (byte) random.nextInt();
            }
            final QueryTopic read = QueryTopic.readOrNull(topic);
            assertTrue(read == null || read.query().dpRank() >= 0);
        }
    }
}
