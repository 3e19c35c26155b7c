package io.kvasir.cli.demo;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The chat traffic of the demo: conversations that arrive at random, belong to groups that share a
 * long system prompt, and grow turn by turn with the answers in their history. What is said and
 * when a conversation starts depend on the seed alone, so every mode gets the same traffic.
 */
public final class ChatWorkload {
    private static final String[] WORDS = {
        "cache", "block", "prefix", "token", "router", "worker", "prompt", "answer", "system",
        "please", "explain", "compare", "measure", "latency", "memory", "engine", "request",
        "history", "short", "long", "first", "second", "because", "without", "between", "under",
        "every", "number", "table"
    };

    private final Shape shape;
    private final List<String> systemPrompts = new ArrayList<>();
    private final List<Conversation> conversations = new ArrayList<>();

    /**
     * Size of the traffic.
     *
     * @param groups system prompts
     * @param systemLength characters of a system prompt, which is tokens for the simulated engines
     * @param conversations conversations in total, spread over the groups at random
     * @param turns user messages per conversation
     * @param messageLength mean characters of a user message
     * @param answerTokens tokens of an answer
     * @param arrivalMs window in which conversations start
     * @param thinkMs mean pause between an answer and the next user message
     */
    public record Shape(
            int groups,
            int systemLength,
            int conversations,
            int turns,
            int messageLength,
            int answerTokens,
            long arrivalMs,
            long thinkMs) {

        /** Requests of all conversations. */
        public int requests() {
            return conversations * turns;
        }
    }

    /** Conversations of a shape; equal seeds give equal ones. */
    public ChatWorkload(Shape shape, long seed) {
        this.shape = shape;
        final SplittableRandom random = new SplittableRandom(seed);
        for (int group = 0; group < shape.groups(); group++) {
            systemPrompts.add("Group " + group + ". " + text(random, shape.systemLength()));
        }
        for (int i = 0; i < shape.conversations(); i++) {
            conversations.add(new Conversation(random.split()));
        }
    }

    Shape shape() {
        return shape;
    }

    /** The conversations, each with its own state; good for one run. */
    List<Conversation> conversations() {
        return conversations;
    }

    /** One user's chat. Used by one thread at a time. */
    final class Conversation {
        private final SplittableRandom random;
        private final long startMs;
        private final ArrayNode messages = Json.MAPPER.createArrayNode();

        private Conversation(SplittableRandom random) {
            this.random = random;
            this.startMs = random.nextLong(Math.max(1, shape.arrivalMs()));
            final int group = random.nextInt(shape.groups());
            say("system", systemPrompts.get(group));
        }

        /** When the first message is due, after the start of the run. */
        long startMs() {
            return startMs;
        }

        /** Adds the user's next message and gives the body of the streaming chat request. */
        byte[] nextRequest(String model) {
            final int mean = shape.messageLength();
            say("user", text(random, mean / 2 + random.nextInt(mean)));
            final ObjectNode body = Json.object();
            body.put("model", model)
                    .put("max_tokens", shape.answerTokens())
                    .put("temperature", 0)
                    .put("ignore_eos", true)
                    .put("stream", true);
            body.putObject("stream_options").put("include_usage", true);
            body.set("messages", messages);
            return body.toString().getBytes(StandardCharsets.UTF_8);
        }

        /** Adds the engine's answer to the history. */
        void answered(String text) {
            say("assistant", text);
        }

        /**
         * The pause before the next message: exponential around the mean, at most four times it.
         */
        long thinkMs() {
            final double pause = -Math.log(1 - random.nextDouble()) * shape.thinkMs();
            return Math.min(Math.round(pause), 4 * shape.thinkMs());
        }

        private void say(String role, String content) {
            messages.addObject().put("role", role).put("content", content);
        }
    }

    private static String text(SplittableRandom random, int length) {
        final StringBuilder text = new StringBuilder(length + 16);
        while (text.length() < length) {
            text.append(WORDS[random.nextInt(WORDS.length)]).append(' ');
        }
        return text.toString().stripTrailing();
    }
}
