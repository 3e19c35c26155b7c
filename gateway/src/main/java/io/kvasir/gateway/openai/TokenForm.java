package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;

import io.kvasir.protocol.handoff.MalformedJsonException;
import io.kvasir.protocol.handoff.VerbatimJson;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * A request as a worker gets it that takes token ids ({@code POST /v1/completions} with {@code
 * prompt} as ids), or why it has no such form. A completion keeps every other byte of its body; of
 * a chat, what shapes its prompt is taken out and its limits and logprobs are said in the
 * completions' words. Immutable.
 */
public final class TokenForm {
    /** Members that say how a chat becomes a prompt or its answer is read: the gateway does. */
    private static final List<String> CHAT_ALONE =
            List.of(
                    "messages",
                    "tools",
                    "tool_choice",
                    "parallel_tool_calls",
                    "documents",
                    "chat_template",
                    "chat_template_kwargs",
                    "reasoning_effort",
                    "include_reasoning",
                    "add_generation_prompt",
                    "continue_final_message",
                    "add_special_tokens",
                    "mm_processor_kwargs",
                    "max_completion_tokens",
                    "top_logprobs");

    private static final String CHAT_ENDPOINT = "an engine answers it at its chat endpoint alone";
    private static final String OWN_ENDPOINT = "an engine answers it at an endpoint of its own";
    private static final String OWN_ECHO =
            "of ids an engine gives back a text of its own, with special tokens in it";
    private static final String TOO_DEEP =
            "its JSON nests deeper than " + VerbatimJson.MAX_DEPTH + " and cannot be edited";
    private static final byte[] NULL = {'n', 'u', 'l', 'l'};
    private static final byte[] ZERO = {'0'};

    private final InferenceRequest.Route route;
    private final List<int[]> prompts; // null where the body has the ids
    private final ChatAnswer chatOrNull;
    private final String member; // what only a text can say; null where none alone does
    private final String why; // it has no such form; null where it has

    private TokenForm(
            InferenceRequest.Route route,
            List<int[]> promptsOrNull,
            ChatAnswer chatOrNull,
            String member,
            String why) {
        this.route = route;
        this.prompts = promptsOrNull;
        this.chatOrNull = chatOrNull;
        this.member = member;
        this.why = why;
    }

    /**
     * That of a request whose prompts are known.
     *
     * @param request not kept
     * @param prompts ids of each, not copied; ignored where the body itself has them
     */
    public static TokenForm of(InferenceRequest request, List<int[]> prompts) {
        if (request.route.form != InferenceRequest.Form.COMPLETION) {
            return none(request.route, null, OWN_ENDPOINT);
        }
        final String member = textMember(request);
        if (member != null) {
            return needsText(request, member);
        }
        if (request.promptIds == null && nestsTooDeep(request.body)) {
            return none(request.route, null, TOO_DEEP);
        }
        return new TokenForm(
                request.route,
                request.promptIds == null ? List.copyOf(prompts) : null,
                request.chat == null
                        ? null
                        : new ChatAnswer(request.sequences(), request.topLogprobs),
                null,
                null);
    }

    /**
     * None: the ids of the prompt are not known.
     *
     * @param hasTokenizer whether the gateway has one for the model
     */
    public static TokenForm unknown(InferenceRequest request, boolean hasTokenizer) {
        if (request.route.form != InferenceRequest.Form.COMPLETION) {
            return none(request.route, null, OWN_ENDPOINT);
        }
        final String member = textMember(request);
        if (member != null) {
            return needsText(request, member);
        }
        return none(
                request.route,
                request.route.prompt,
                hasTokenizer
                        ? "its token ids cannot be known here, as of parts other than text"
                        : "the gateway has no tokenizer for the model; set tokenizer");
    }

    private static TokenForm needsText(InferenceRequest request, String member) {
        return none(request.route, member, request.chat == null ? OWN_ECHO : CHAT_ENDPOINT);
    }

    private static TokenForm none(InferenceRequest.Route route, String memberOrNull, String why) {
        return new TokenForm(route, null, null, memberOrNull, why);
    }

    /** Whether the body can be no {@link VerbatimJson}, which is what is edited. */
    private static boolean nestsTooDeep(byte[] body) {
        try (JsonParser json = Json.FACTORY.createParser(body)) {
            while (json.nextToken() != null) {
                final int depth = json.getParsingContext().getNestingDepth();
                if (depth - 1 > VerbatimJson.MAX_DEPTH) { // less the body itself
                    return true;
                }
            }
            return false;
        } catch (IOException e) {
            throw new UncheckedIOException("a body that was read before", e);
        }
    }

    /** A member that asks for what a completion of ids cannot give; null for none. */
    private static String textMember(InferenceRequest request) {
        if (request.chat == null) {
            return request.echo && request.promptIds == null ? "echo" : null;
        }
        if (request.wholeFor != null) {
            return request.wholeFor; // means another thing, or is answered elsewhere
        }
        final boolean mayCall =
                request.chat.get("tools") instanceof ArrayNode tools
                        && !tools.isEmpty()
                        && !"none".equals(request.chat.path("tool_choice").textValue());
        return mayCall ? "tools" : null;
    }

    /** Whether a worker that takes token ids can be sent the request. */
    public boolean isPossible() {
        return why == null;
    }

    /** What the client gets where it has no such form and no worker takes its text. */
    public ApiException refusal() {
        return ApiException.client(
                400,
                member,
                "needs_text_worker",
                "needs_text_worker",
                (member == null ? "the body" : "'" + member + "'")
                        + " needs a worker that takes text, and the workers of this model take"
                        + " token ids (input=tokens): "
                        + why);
    }

    /**
     * The body for a worker that takes token ids.
     *
     * @param text the body for one that takes text
     * @throws ApiException 413 if it has to be written anew and needs too much memory for that
     * @throws IOException if that is no JSON object
     */
    public byte[] body(byte[] text) throws ApiException, IOException {
        if (prompts == null) {
            return text;
        }
        final byte[] ids = ids();
        try {
            return edited(VerbatimJson.parse(text), ids);
        } catch (MalformedJsonException e) { // a member twice, or a number that only Python reads
            return edited(VerbatimJson.parse(Json.MAPPER.writeValueAsBytes(Json.tree(text))), ids);
        }
    }

    private byte[] edited(VerbatimJson body, byte[] ids) {
        final VerbatimJson.Edit edit = body.edit().set("prompt", ids);
        if (route == InferenceRequest.Route.CHAT) {
            CHAT_ALONE.forEach(edit::remove);
            final Optional<byte[]> most = given(body, "max_completion_tokens");
            if (most.isPresent()) {
                edit.set("max_tokens", most.get());
            } else if (body.value("max_tokens").isEmpty()) {
                edit.set("max_tokens", NULL); // else a completion has 16
            }
            if (wantsLogprobs(body)) {
                edit.set("logprobs", given(body, "top_logprobs").orElse(ZERO));
            } else {
                edit.remove("logprobs");
            }
        }
        return edit.apply().bytes();
    }

    private static Optional<byte[]> given(VerbatimJson body, String name) {
        return body.value(name).filter(value -> !Arrays.equals(value, NULL));
    }

    private static boolean wantsLogprobs(VerbatimJson body) {
        return body.value("logprobs").map(TokenForm::tree).map(JsonNode::asBoolean).orElse(false);
    }

    private static JsonNode tree(byte[] value) {
        try {
            return Json.MAPPER.readTree(value);
        } catch (IOException e) {
            return Json.MAPPER.nullNode();
        }
    }

    private byte[] ids() {
        final ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
        final boolean batch = prompts.size() > 1;
        if (batch) {
            out.write('[');
        }
        for (int prompt = 0; prompt < prompts.size(); prompt++) {
            if (prompt > 0) {
                out.write(',');
            }
            out.write('[');
            append(out, prompts.get(prompt));
            out.write(']');
        }
        if (batch) {
            out.write(']');
        }
        return out.toByteArray();
    }

    private static void append(ByteArrayOutputStream out, int[] ids) {
        for (int i = 0; i < ids.length; i++) {
            if (i > 0) {
                out.write(',');
            }
            out.writeBytes(Integer.toString(ids[i]).getBytes(StandardCharsets.US_ASCII));
        }
    }

    /**
     * What turns the worker's answer into the client's; null where it is as the client wants it.
     */
    public ChatAnswer chatOrNull() {
        return chatOrNull;
    }
}
