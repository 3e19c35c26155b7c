package io.kvasir.protocol.handoff;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.random.RandomGenerator;

class BootstrapTest {
    @Test
    void recordedBodiesAreTheClientsBodyAndTheThreeFields() {
        final List<VerbatimJson> lines = Captures.sglang();
        int meetings = 0;
        for (VerbatimJson line : lines) {
            final VerbatimJson body = line.object("request").orElseThrow();
            final Optional<Bootstrap> bootstrap = Bootstrap.in(body);
            if (bootstrap.isPresent()) {
                meetings++;
                assertEquals(8998, bootstrap.get().port());
                assertEquals(body, bootstrap.get().spliceInto(body));
                final VerbatimJson client =
                        body.edit()
                                .remove("bootstrap_host")
                                .remove("bootstrap_port")
                                .remove("bootstrap_room")
                                .apply();
                final VerbatimJson again = bootstrap.get().spliceInto(client);
                assertEquals(body.toString().replace(" ", ""), again.toString().replace(" ", ""));
            }
        }
        assertEquals(8, meetings);
        assertEquals(9, lines.size());
    }

    @Test
    void aRoomFallsToItsRankForEveryDraw() {
        final Random random = new Random(Seeds.next("aRoomFallsToItsRankForEveryDraw"));
        for (int i = 0; i < 100_000; i++) {
            final int dpSize = 1 + random.nextInt(64);
            final int rank = random.nextInt(dpSize);
            final long room = Bootstrap.room(rank, dpSize, random);
            assertTrue(room >= 0, "room=" + room);
            assertEquals(rank, room % dpSize);
        }
    }

    @Test
    void theHighestDrawStaysInRange() {
        final RandomGenerator highest = () -> -1L;
        for (int dpSize = 1; dpSize <= 64; dpSize++) {
            for (int rank = 0; rank < dpSize; rank++) {
                final long room = Bootstrap.room(rank, dpSize, highest);
                assertTrue(room >= 0, "room=" + room);
                assertEquals(rank, room % dpSize);
            }
        }
    }

    @Test
    void ranksAndValuesOutOfRangeAreRefusedWithTheirValues() {
        assertEquals(
                "rank=2, dpSize=2",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> Bootstrap.room(2, 2, new Random(1)))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> Bootstrap.room(0, 0, new Random(1)));
        assertThrows(IllegalArgumentException.class, () -> new Bootstrap("", 1, 1));
        assertThrows(IllegalArgumentException.class, () -> new Bootstrap("h", 65_536, 1));
        assertThrows(IllegalArgumentException.class, () -> new Bootstrap("h", 1, -1));
    }

    @Test
    void aBatchedBodyGetsArrays() {
        assertEquals(
                "{\"text\":[\"a\",\"b\"],\"bootstrap_host\":[\"h\",\"h\"],"
                        + "\"bootstrap_port\":[1,2],\"bootstrap_room\":[9223372036854775807,0]}",
                Bootstrap.spliceInto(
                                VerbatimJson.parse("{\"text\":[\"a\",\"b\"]}"),
                                List.of(
                                        new Bootstrap("h", 1, Long.MAX_VALUE),
                                        new Bootstrap("h", 2, 0)))
                        .toString());
    }

    @Test
    void incompleteOrOddFieldsAreNoMeeting() {
        for (String body :
                List.of(
                        "{}",
                        "{\"bootstrap_host\":\"h\",\"bootstrap_port\":1}",
                        "{\"bootstrap_host\":null,\"bootstrap_port\":1,\"bootstrap_room\":1}",
                        "{\"bootstrap_host\":[\"h\"],\"bootstrap_port\":[1],\"bootstrap_room\":[1]}",
                        "{\"bootstrap_host\":\"h\",\"bootstrap_port\":1,\"bootstrap_room\":1e3}",
                        "{\"bootstrap_host\":\"\",\"bootstrap_port\":1,\"bootstrap_room\":1}",
                        "{\"bootstrap_host\":\"h\",\"bootstrap_port\":0,\"bootstrap_room\":1}",
                        "{\"bootstrap_host\":\"h\",\"bootstrap_port\":1,\"bootstrap_room\":-1}")) {
            assertEquals(Optional.empty(), Bootstrap.in(VerbatimJson.parse(body)), body);
        }
    }
}
