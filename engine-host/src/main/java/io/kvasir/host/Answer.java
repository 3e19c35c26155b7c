package io.kvasir.host;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;

/**
 * The answer to a request: a choice for each prompt and sample, whole or as a stream of events.
 * Choices are made by a thread each; their events are written one at a time.
 */
final class Answer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String CONTENT = "content";
    private static final byte[] DATA = "data: ".getBytes(StandardCharsets.UTF_8);
    private static final byte[] END = "\n\n".getBytes(StandardCharsets.UTF_8);
    private static final byte[] DONE = "data: [DONE]\n\n".getBytes(StandardCharsets.UTF_8);

    private final HostRequest request;
    private final String id;
    private final long created;
    private final OutputStream streamOrNull;
    private final BooleanSupplier clientLeft;
    private final List<Choice> choices = new ArrayList<>();
    private boolean broken; // guarded by this, as is the stream

    /**
     * @param streamOrNull where events are written; null where the answer is written whole
     * @param clientLeft may be asked by any thread
     */
    Answer(
            HostRequest request,
            String id,
            long created,
            OutputStream streamOrNull,
            BooleanSupplier clientLeft) {
        this.request = request;
        this.id = id;
        this.created = created;
        this.streamOrNull = streamOrNull;
        this.clientLeft = clientLeft;
    }

    /** Adds the next choice. */
    Output choice(GenerateRequest part) {
        final Choice choice = new Choice(choices.size(), part);
        choices.add(choice);
        return choice;
    }

    /** Ends a choice, whose generator has returned. */
    void complete(Output output) throws ClientLeftException {
        if (streamOrNull != null) {
            ((Choice) output).end();
        }
    }

    /** Has every further part refused: the request has failed. */
    synchronized void breakOff() {
        broken = true;
    }

    /** Writes an error as the last event. */
    synchronized void error(ObjectNode error) throws IOException {
        write(JSON.writeValueAsBytes(error));
        streamOrNull.write(DONE);
        streamOrNull.flush();
    }

    /** Ends a stream. */
    synchronized void done() throws IOException {
        if (request.includeUsage()) {
            final ObjectNode last = head("chunk");
            last.putArray("choices");
            last.set("usage", usage());
            write(JSON.writeValueAsBytes(last));
        }
        streamOrNull.write(DONE);
        streamOrNull.flush();
    }

    /** The whole answer. */
    byte[] whole() throws JsonProcessingException {
        final ObjectNode whole = head(null);
        final ArrayNode all = whole.putArray("choices");
        for (Choice choice : choices) {
            all.add(choice.whole());
        }
        whole.set("usage", usage());
        return JSON.writeValueAsBytes(whole);
    }

    private ObjectNode head(String chunkOrNull) {
        final String object =
                !request.chat()
                        ? "text_completion"
                        : chunkOrNull == null ? "chat.completion" : "chat.completion.chunk";
        return JSON.createObjectNode()
                .put("id", id)
                .put("object", object)
                .put("created", created)
                .put("model", request.model());
    }

    private ObjectNode usage() {
        long prompt = 0;
        long cached = 0;
        long output = 0;
        for (Choice choice : choices) {
            if (choice.part.sample() == 0) {
                prompt += choice.promptTokens;
                cached += choice.cachedTokens;
            }
            output += choice.outputTokens;
        }
        final ObjectNode usage = JSON.createObjectNode();
        usage.put("prompt_tokens", prompt).put("completion_tokens", output);
        usage.put("total_tokens", prompt + output);
        usage.putObject("prompt_tokens_details").put("cached_tokens", cached);
        return usage;
    }

    /** Writes an event; under the lock. */
    private void write(byte[] json) throws IOException {
        streamOrNull.write(DATA);
        streamOrNull.write(json);
        streamOrNull.write(END);
        streamOrNull.flush();
    }

    private synchronized void event(ObjectNode event) throws ClientLeftException {
        if (broken) {
            throw new ClientLeftException(null);
        }
        try {
            write(JSON.writeValueAsBytes(event));
        } catch (IOException e) {
            broken = true;
            throw new ClientLeftException(e);
        }
    }

    /** One of the answers. */
    private final class Choice implements Output {
        private final int index;
        private final GenerateRequest part;
        private final StringBuilder text = new StringBuilder();
        private final ObjectNode message = JSON.createObjectNode();
        private String reason = "stop";
        private long promptTokens;
        private long cachedTokens;
        private long outputTokens;
        private boolean opened;

        Choice(int index, GenerateRequest part) {
            this.index = index;
            this.part = part;
            this.promptTokens = part.promptTokens() == null ? 0 : part.promptTokens().length;
        }

        @Override
        public void text(String next, int tokens) throws ClientLeftException {
            Objects.requireNonNull(next, "part");
            outputTokens += notNegative(tokens);
            if (streamOrNull == null) {
                checkClient();
                text.append(next);
            } else if (request.chat()) {
                event(JSON.createObjectNode().put(CONTENT, next), null);
            } else {
                event(choiceOf("text", JSON.getNodeFactory().textNode(next), null));
            }
        }

        @Override
        public void delta(ObjectNode delta, int tokens) throws ClientLeftException {
            if (!request.chat()) {
                throw new IllegalStateException("a completion has no delta: use text");
            }
            Objects.requireNonNull(delta, "delta");
            outputTokens += notNegative(tokens);
            if (streamOrNull == null) {
                checkClient();
                final ObjectNode more = delta.deepCopy();
                if (more.path(CONTENT).isTextual()) {
                    text.append(more.remove(CONTENT).textValue()); // in order with text()
                }
                Deltas.join(message, more);
            } else {
                event(delta, null);
            }
        }

        private static int notNegative(int tokens) {
            if (tokens < 0) {
                throw new IllegalArgumentException("tokens=" + tokens + " must not be negative");
            }
            return tokens;
        }

        private void checkClient() throws ClientLeftException {
            if (clientLeft()) {
                throw new ClientLeftException(null);
            }
        }

        @Override
        public void prompt(int tokens, int cached) {
            notNegative(tokens);
            if (cached < 0 || cached > tokens) {
                throw new IllegalArgumentException(
                        "cachedTokens=" + cached + " must be in 0.." + tokens);
            }
            promptTokens = tokens;
            cachedTokens = cached;
        }

        @Override
        public void finish(String why) {
            reason = Objects.requireNonNull(why, "reason");
        }

        @Override
        public boolean clientLeft() {
            synchronized (Answer.this) {
                if (broken) {
                    return true;
                }
            }
            return clientLeft.getAsBoolean();
        }

        private void end() throws ClientLeftException {
            if (request.chat()) {
                event(JSON.createObjectNode(), reason);
            } else {
                event(choiceOf("text", JSON.getNodeFactory().textNode(""), reason));
            }
        }

        private void event(ObjectNode delta, String why) throws ClientLeftException {
            if (!opened) { // not before the engine has something: it may still refuse
                opened = true;
                final ObjectNode opening = JSON.createObjectNode().put("role", "assistant");
                event(choiceOf("delta", opening.put(CONTENT, ""), null));
            }
            event(choiceOf("delta", delta, why));
        }

        private void event(ObjectNode event) throws ClientLeftException {
            Answer.this.event(event);
        }

        private ObjectNode choiceOf(String name, JsonNode content, String why) {
            final ObjectNode chunk = head("chunk");
            final ObjectNode choice = chunk.putArray("choices").addObject();
            choice.put("index", index);
            choice.set(name, content);
            choice.putNull("logprobs").put("finish_reason", why);
            return chunk;
        }

        private ObjectNode whole() {
            final ObjectNode choice = JSON.createObjectNode().put("index", index);
            if (request.chat()) {
                final ObjectNode said = choice.putObject("message").put("role", "assistant");
                said.put(CONTENT, text.toString());
                Deltas.join(said, message);
            } else {
                choice.put("text", text.toString());
            }
            return choice.putNull("logprobs").put("finish_reason", reason);
        }
    }
}
