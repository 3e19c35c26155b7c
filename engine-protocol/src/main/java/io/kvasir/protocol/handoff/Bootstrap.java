package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.databind.JsonNode;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;

/**
 * SGLang's rendezvous: prefill and decode get the same three fields at once and meet in the room.
 *
 * @param host host of the prefill engine's bootstrap server
 * @param port its port, 1..65535
 * @param room number of the meeting, 0..2^63−1, unique among running requests
 */
public record Bootstrap(String host, int port, long room) {
    static final String HOST = "bootstrap_host";
    static final String PORT = "bootstrap_port";
    static final String ROOM = "bootstrap_room";

    /** Checks the values. */
    public Bootstrap {
        if (host == null || host.isBlank()) {
            throw new IllegalArgumentException("bootstrap host is empty");
        }
        if (port < 1 || port > 65_535) {
            throw new IllegalArgumentException("bootstrap port=" + port + ", must be 1..65535");
        }
        if (room < 0) {
            throw new IllegalArgumentException("bootstrap room=" + room + ", must not be negative");
        }
    }

    /**
     * Draws a room that SGLang's own rule (room mod ranks) sends to the chosen rank.
     *
     * @param rank data-parallel rank of the prefill engine, 0..{@code dpSize}−1
     * @param dpSize number of ranks, at least 1
     * @param random where the draw comes from; one thread
     * @return a room in 0..2^63−1 with {@code room % dpSize == rank}
     * @throws IllegalArgumentException if the rank is not one of the ranks
     */
    public static long room(int rank, int dpSize, RandomGenerator random) {
        if (dpSize < 1 || rank < 0 || rank >= dpSize) {
            throw new IllegalArgumentException("rank=" + rank + ", dpSize=" + dpSize);
        }
        final long drawn = random.nextLong() >>> 1;
        final long room = drawn - drawn % dpSize + rank;
        return room >= 0
                ? room
                : room - dpSize; // above 2^63−1 only in the last, partial round of ranks
    }

    /**
     * Puts the three fields into a body.
     *
     * @param body the body; unchanged
     * @return the body with the fields, all other bytes as they were
     * @throws MalformedJsonException if the body has one of the members twice
     */
    public VerbatimJson spliceInto(VerbatimJson body) {
        return body.edit().set(HOST, host).set(PORT, port).set(ROOM, room).apply();
    }

    /**
     * Puts the fields of a batched body, one meeting per prompt.
     *
     * @param body the body; unchanged
     * @param meetings as many as the body has prompts, in their order
     * @return the body with each field an array
     * @throws MalformedJsonException if the body has one of the members twice
     */
    public static VerbatimJson spliceInto(VerbatimJson body, List<Bootstrap> meetings) {
        return body.edit()
                .set(HOST, array(meetings, m -> VerbatimJson.quoted(m.host)))
                .set(PORT, array(meetings, m -> Integer.toString(m.port)))
                .set(ROOM, array(meetings, m -> Long.toString(m.room)))
                .apply();
    }

    private static byte[] array(List<Bootstrap> meetings, Function<Bootstrap, String> element) {
        return meetings.stream()
                .map(element)
                .collect(Collectors.joining(",", "[", "]"))
                .getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Reads the fields of a body that is not batched.
     *
     * @param body the body; unchanged
     * @return the meeting, or empty where a field is absent, null, of another form or out of range
     * @throws MalformedJsonException if the body has one of the members twice
     */
    public static Optional<Bootstrap> in(VerbatimJson body) {
        final Optional<JsonNode> host = body.tree(HOST).filter(JsonNode::isTextual);
        final Optional<JsonNode> port = body.tree(PORT).filter(JsonNode::isInt);
        final Optional<JsonNode> room =
                body.tree(ROOM).filter(n -> n.isIntegralNumber() && n.canConvertToLong());
        if (host.isEmpty() || port.isEmpty() || room.isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(
                    new Bootstrap(
                            host.get().textValue(), port.get().intValue(), room.get().longValue()));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }
}
