package io.kvasir.nixl.vllm;

import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

import java.io.IOException;
import java.io.UncheckedIOException;
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

    private interface Packing {
        void into(MessageBufferPacker packer) throws IOException;
    }

    private HandshakeCodec() {}

    private static byte[] packed(Packing packing) {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            packing.into(packer);
            return packer.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static byte[] question(Question question) {
        return packed(
                packer ->
                        packer.packArrayHeader(3)
                                .packBinaryHeader(GET_META.length)
                                .addPayload(GET_META)
                                .packInt(question.pipelineRank())
                                .packInt(question.tensorRank()));
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
        return packed(
                packer ->
                        packer.packMapHeader(2)
                                .packString("compatibility_hash")
                                .packString(compatibilityHash)
                                .packString("agent_metadata_bytes")
                                .packBinaryHeader(metadata.length)
                                .addPayload(metadata));
    }

    static byte[] refusal(String error, String message) {
        return packed(
                packer ->
                        packer.packMapHeader(2)
                                .packString("error")
                                .packString(error)
                                .packString("message")
                                .packString(message));
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
        return packed(packer -> packer.packDouble(nanos / NS_PER_SECOND));
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
