package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;

/**
 * vLLM's {@code kv_transfer_params}: asked of a prefill engine, answered by it, handed to a decode
 * engine whole. Fields differ between releases, so the object is its bytes; the methods look at
 * single fields and answer empty where one is absent, null or of a form unknown here. Immutable.
 *
 * <p>One answer serves one decode request: used again, it names blocks that hold another prompt by
 * then, and the engine answers 200 with wrong text.
 *
 * @param json the object as the engine wrote it
 */
public record KvTransferParams(VerbatimJson json) {
    /** The member of request and response bodies that holds the object. */
    public static final String FIELD = "kv_transfer_params";

    private static final KvTransferParams PREFILL_REQUEST =
            new KvTransferParams(
                    VerbatimJson.parse(
                            """
                            {"do_remote_decode":true,"do_remote_prefill":false,\
                            "remote_engine_id":null,"remote_block_ids":null,\
                            "remote_host":null,"remote_port":null}\
                            """));

    /**
     * Returns what a prefill request carries: keep the blocks, a decode engine will come for them.
     *
     * @return the same object every time
     */
    public static KvTransferParams prefillRequest() {
        return PREFILL_REQUEST;
    }

    /**
     * Takes the object out of a request or response body.
     *
     * @param body the body; unchanged
     * @return the object, or empty where the member is absent, null or no object
     * @throws MalformedJsonException if the body has the member twice
     */
    public static Optional<KvTransferParams> in(VerbatimJson body) {
        return body.object(FIELD).map(KvTransferParams::new);
    }

    /**
     * Puts the object into a body, in place of one that is there.
     *
     * @param body the body; unchanged
     * @return the body with this object, all other bytes as they were
     * @throws MalformedJsonException if the body has the member twice
     */
    public VerbatimJson spliceInto(VerbatimJson body) {
        return body.edit().set(FIELD, json).apply();
    }

    /**
     * Tells whether the receiver is to fetch blocks that another engine prefilled.
     *
     * @return true only where the field is true
     */
    public boolean doRemotePrefill() {
        return isTrue("do_remote_prefill");
    }

    /**
     * Tells whether the receiver is to keep its blocks for another engine that decodes.
     *
     * @return true only where the field is true
     */
    public boolean doRemoteDecode() {
        return isTrue("do_remote_decode");
    }

    /**
     * Returns the engine that holds the blocks.
     *
     * @return its identifier, new with every start of the engine
     */
    public Optional<String> remoteEngineId() {
        return text("remote_engine_id");
    }

    /**
     * Returns the prefill engine's own name for the request; notifications start with it.
     *
     * @return the name
     */
    public Optional<String> remoteRequestId() {
        return text("remote_request_id");
    }

    /**
     * Returns the host of the prefill engine's side channel.
     *
     * @return host name or address
     */
    public Optional<String> remoteHost() {
        return text("remote_host");
    }

    /**
     * Returns the port of the prefill engine's side channel.
     *
     * @return port
     */
    public OptionalInt remotePort() {
        return number("remote_port");
    }

    /**
     * Returns the blocks that wait to be fetched.
     *
     * @return block numbers, flat or per group
     */
    public Optional<RemoteBlocks> remoteBlocks() {
        return present("remote_block_ids").flatMap(RemoteBlocks::read);
    }

    /**
     * Returns the tensor parallelism of the prefill engine.
     *
     * @return ranks
     */
    public OptionalInt tpSize() {
        return number("tp_size");
    }

    /**
     * Returns how much of the prompt the blocks cover.
     *
     * @return tokens
     */
    public OptionalInt remoteNumTokens() {
        return number("remote_num_tokens");
    }

    /**
     * Returns the side that moves the bytes.
     *
     * @return {@code pull} or {@code push} as far as known
     */
    public Optional<String> transferMode() {
        return text("transfer_mode");
    }

    /**
     * Returns when the prefill engine gives the blocks up.
     *
     * @return seconds on that engine's own clock
     */
    public OptionalDouble remoteBlocksExpiryTime() {
        return present("remote_blocks_expiry_time")
                .filter(JsonNode::isNumber)
                .map(node -> OptionalDouble.of(node.doubleValue()))
                .orElse(OptionalDouble.empty());
    }

    private Optional<JsonNode> present(String name) {
        return json.tree(name).filter(node -> !node.isNull());
    }

    private boolean isTrue(String name) {
        return present(name).filter(JsonNode::isBoolean).map(JsonNode::booleanValue).orElse(false);
    }

    private Optional<String> text(String name) {
        return present(name).filter(JsonNode::isTextual).map(JsonNode::textValue);
    }

    private OptionalInt number(String name) {
        return present(name)
                .filter(node -> node.isIntegralNumber() && node.canConvertToInt())
                .map(node -> OptionalInt.of(node.intValue()))
                .orElse(OptionalInt.empty());
    }

    /** Returns the object's text. */
    @Override
    public String toString() {
        return json.toString();
    }
}
