package io.kvasir.nixl.vllm;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Messages of the side channel.
 *
 * <pre>
 *   question:  [bin "get_meta_msg", pipeline rank, tensor rank]
 *   answer:    {compatibility_hash: str, agent_metadata_bytes: bin} | float64: seconds of the clock
 *   refusal:   {error: str, message: str}                           | float64
 * </pre>
 *
 * <p>vLLM itself never refuses: see {@link VllmHandshake}. To its decoder a refusal is an answer
 * without the key it needs, so it fails at once instead of waiting.
 */
final class HandshakeCodec {
    static final String UNKNOWN_RANK = "unknown_rank";
    static final String BAD_QUESTION = "bad_question";

    private static final byte[] GET_META = "get_meta_msg".getBytes(StandardCharsets.US_ASCII);
    private static final double NS_PER_SECOND = 1e9;

    /**
     * A question.
     *
     * @param pipelineRank pipeline parallel rank
     * @param tensorRank tensor parallel rank
     */
    record Question(int pipelineRank, int tensorRank) {}

    /**
     * An answer's first frame.
     *
     * @param compatibilityHash the peer's hash
     * @param metadata encoded agent metadata; not to be decoded where hashes differ
     * @param unknownKeys keys that were skipped
     */
    record Answer(String compatibilityHash, OpaqueBytes metadata, int unknownKeys) {}

    private HandshakeCodec() {}

    static byte[] question(Question question) {
        return new WireWriter()
                .array(3)
                .binary(GET_META)
                .integer(question.pipelineRank())
                .integer(question.tensorRank())
                .toByteArray();
    }

    static Question parseQuestion(byte[] message) {
        final WireReader reader = new WireReader(message, "handshake question");
        if (reader.arrayHeader("the question") != 3
                || !Arrays.equals(GET_META, reader.binary("its name").toArray())) {
            throw reader.malformed("it is not [\"get_meta_msg\", rank, rank]", null);
        }
        final int pipelineRank = reader.integer("pipeline rank");
        final Question question = new Question(pipelineRank, reader.integer("tensor rank"));
        reader.end();
        return question;
    }

    static byte[] answer(String compatibilityHash, byte[] metadata) {
        return new WireWriter()
                .map(2)
                .string("compatibility_hash")
                .string(compatibilityHash)
                .string("agent_metadata_bytes")
                .binary(metadata)
                .toByteArray();
    }

    static byte[] refusal(String error, String message) {
        return new WireWriter()
                .map(2)
                .string("error")
                .string(error)
                .string("message")
                .string(message)
                .toByteArray();
    }

    /**
     * Reads an answer.
     *
     * @param message the first frame
     * @param peer the peer's address, for errors
     * @return the answer
     * @throws VllmPeerException of kind {@code UNKNOWN_RANK} where the peer says so, otherwise of
     *     kind {@code MALFORMED}
     */
    static Answer parseAnswer(byte[] message, String peer) {
        final WireReader reader = new WireReader(message, "handshake answer of " + peer);
        String hash = null;
        OpaqueBytes metadata = null;
        String error = null;
        String explanation = "";
        int unknownKeys = 0;
        final int fields = reader.mapHeader("the map");
        for (int i = 0; i < fields; i++) {
            final String key = reader.string("a key");
            switch (key) {
                case "compatibility_hash" -> hash = reader.string(key);
                case "agent_metadata_bytes" -> metadata = reader.binary(key);
                case "error" -> error = reader.string(key);
                case "message" -> explanation = reader.string(key);
                default -> {
                    reader.skip(key);
                    unknownKeys++;
                }
            }
        }
        reader.end();
        if (error != null) {
            throw new VllmPeerException(
                    error.equals(UNKNOWN_RANK)
                            ? VllmPeerException.Kind.UNKNOWN_RANK
                            : VllmPeerException.Kind.MALFORMED,
                    peer + " refuses the handshake: " + error + ": " + explanation);
        }
        if (hash == null || metadata == null) {
            throw reader.malformed(
                    "key "
                            + (hash == null ? "compatibility_hash" : "agent_metadata_bytes")
                            + " is missing; known are protocols "
                            + AgentMetadataCodec.KNOWN_PROTOCOLS
                            + " of vLLM's NIXL connector",
                    null);
        }
        return new Answer(hash, metadata, unknownKeys);
    }

    static byte[] clock(long nanos) {
        return new WireWriter().number(nanos / NS_PER_SECOND).toByteArray();
    }

    static long parseClock(byte[] message, String peer) {
        final WireReader reader = new WireReader(message, "handshake clock of " + peer);
        final double seconds = reader.number("the clock");
        reader.end();
        if (!Double.isFinite(seconds) || Math.abs(seconds) > Long.MAX_VALUE / NS_PER_SECOND / 2) {
            throw reader.malformed("it is " + seconds + " s", null);
        }
        return Math.round(seconds * NS_PER_SECOND);
    }
}
