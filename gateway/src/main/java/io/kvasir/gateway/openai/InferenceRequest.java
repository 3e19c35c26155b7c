package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.protocol.handoff.MalformedJsonException;
import io.kvasir.protocol.handoff.VerbatimJson;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What the gateway reads of a completion request; all else of the body passes through unread.
 * Written by {@link RequestParser} only.
 */
public final class InferenceRequest {
    /** What of a body makes the prompt, and how its answer is read. */
    public enum Form {
        /** OpenAI's completions, of a text or of a chat. */
        COMPLETION,
        /** OpenAI's Responses: a chat as a list of items. */
        RESPONSES,
        /** Anthropic's Messages: a chat as a list of blocks. */
        MESSAGES,
        /** SGLang's own: a text or token ids, and no model's name. */
        GENERATE,
        /** vLLM's own: token ids, which the answer has as well. */
        TOKENS,
        /** Any other: the prompt is not known, and the worker is chosen by its load. */
        OTHER;

        /** Whether events of a stream have names, and say by their {@code type} what they are. */
        boolean hasTypedEvents() {
            return this == RESPONSES || this == MESSAGES;
        }
    }

    /** The endpoints that a worker answers. */
    public enum Route {
        CHAT("/v1/chat/completions", "chat", "messages", Form.COMPLETION),
        COMPLETIONS("/v1/completions", "completions", "prompt", Form.COMPLETION),
        RESPONSES("/v1/responses", "responses", "input", Form.RESPONSES),
        MESSAGES("/v1/messages", "messages", "messages", Form.MESSAGES),
        GENERATE("/generate", "generate", "text", Form.GENERATE),
        INFERENCE_GENERATE("/inference/v1/generate", "generate", "token_ids", Form.TOKENS),
        COUNT_TOKENS("/v1/messages/count_tokens", "count_tokens", "messages", Form.OTHER),
        EMBEDDINGS("/v1/embeddings", "embeddings", "input", Form.OTHER),
        POOLING("/pooling", "pooling", "input", Form.OTHER),
        CLASSIFY("/classify", "classify", "input", Form.OTHER),
        SCORE("/score", "score", "queries", Form.OTHER),
        V1_SCORE("/v1/score", "score", "queries", Form.OTHER),
        RERANK("/rerank", "rerank", "query", Form.OTHER),
        V1_RERANK("/v1/rerank", "rerank", "query", Form.OTHER),
        V2_RERANK("/v2/rerank", "rerank", "query", Form.OTHER),
        DETOKENIZE("/detokenize", "detokenize", "tokens", Form.OTHER);

        private static final Map<String, Route> BY_PATH =
                Stream.of(values()).collect(Collectors.toMap(route -> route.path, route -> route));

        public final String path;
        public final String label;

        /** Member of the body that has the prompt. */
        public final String prompt;

        public final Form form;

        Route(String path, String label, String prompt, Form form) {
            this.path = path;
            this.label = label;
            this.prompt = prompt;
            this.form = form;
        }

        /** The endpoint of a path; null where it is none of these. */
        public static Route ofOrNull(String path) {
            return BY_PATH.get(path);
        }

        /** The endpoint of a path, in the form that its errors have too; OTHER for any other. */
        public static Form formOf(String pathOrNull) {
            if (pathOrNull != null && pathOrNull.startsWith(MESSAGES.path)) {
                return Form.MESSAGES;
            }
            final Route route = pathOrNull == null ? null : ofOrNull(pathOrNull);
            return route == null ? Form.OTHER : route.form;
        }

        /** Whether requests can be split between a prefill and a decode worker. */
        public boolean canSplit() {
            return form == Form.COMPLETION;
        }

        /**
         * What a worker is asked for: never the path as the client wrote it, which a worker may
         * read in another way.
         */
        public String target(String queryOrNull) {
            return queryOrNull == null ? path : path + '?' + queryOrNull;
        }
    }

    /** By which a request overrides how it is routed: the gateway's alone, no worker gets it. */
    public static final String ROUTER_OVERRIDE = "router_config_override";

    /** Extensions of another frontend, of which some say how a request is routed. */
    public static final String NVEXT = "nvext";

    static final String CONTINUOUS_USAGE = "continuous_usage_stats";

    /** Member with vLLM's extra arguments. */
    static final String EXTRA_ARGUMENTS = "vllm_xargs";

    /** Of these: with "full" the engine announces the blocks of the request's hit once more. */
    static final String REPORT_MODE = "kv_cache_report_mode";

    private static final String RANK = "routed_dp_rank";

    private static final byte[] WHOLE_OPTION =
            ascii("\"stream_options\":{\"include_usage\":true},");
    private static final byte[] OPTION = ascii("{\"include_usage\":true}");
    private static final byte[] MEMBER = ascii("\"include_usage\":true");
    private static final byte[] TRUE = ascii("true");

    public final Route route;
    final byte[] body;

    /** Null when the body names none. */
    public String model;

    public boolean stream;

    /** Null when absent. */
    public String cacheSalt;

    /** Whether each prompt of a batch has a salt of its own, none of which is read. */
    public boolean severalSalts;

    /** Whether the client's body has a salt, where {@link #cacheSalt} is the tenant's. */
    public boolean clientSalt;

    /** Whether the client itself asked for the usage chunk. */
    public boolean includeUsage;

    /** Prompt as text; null when given in another form. */
    public String promptText;

    /** Prompt as token ids, exactly as long as the prompt; null when given in another form. */
    public int[] promptIds;

    /** Further prompts of a batch, in the form of the first one. */
    public List<String> moreTexts = List.of();

    public List<int[]> moreIds = List.of();

    /** Prompts that are given as embeddings, the first of all prompts not counted. */
    int moreEmbeds;

    /** Member of the body that holds the prompts beside the first one. */
    public String batchIn = "prompt";

    private int droppedPrompts;

    /** Answers that are generated for each prompt. */
    int samples = 1;

    /** Member of the body that asks for several of them; null where one is generated. */
    public String samplesIn;

    /** {@code nvext.agent_hints.strict_priority} as it is written; null where it is absent. */
    public String strictPriority;

    /** {@code nvext.agent_hints.priority}, likewise. */
    public String headStart;

    /** Whether the request says which blocks the engine is to announce for it. */
    public boolean setsAnnouncements;

    /** Whether the request asks the engine to shorten prompts. */
    public boolean truncates;

    /**
     * How many tokens of a prompt the engine is to keep; -1 for as many as its model takes, 0 for
     * all.
     */
    public int truncatePromptTokens;

    /** Whether the length of the answer has a limit, the default of engines included. */
    public boolean limitsOutput;

    /**
     * "right" where the first ones are to be kept, "left" for the last ones; null where the request
     * does not say, which means the last ones, too. What is neither is the engine's to refuse.
     */
    public String truncationSide;

    /** Member of the body by which an engine is handed another one's blocks; null for none. */
    public String namesBlocks;

    /**
     * Member of the body that needs the whole request to be computed by one engine; null for none.
     */
    public String wholeFor;

    /** Whether the answer is to begin with the prompt. */
    boolean echo;

    boolean logprobs;
    boolean promptLogprobs;

    /** Whether SGLang is to keep its blocks apart from others' in a way that no event says. */
    boolean cachedApart;

    /**
     * Whether an engine may compute other tokens than those that are read here: SGLang the ids that
     * a chat brings instead of its messages, and media, embeddings or a session beside a prompt.
     */
    boolean otherTokens;

    /** Member {@link #ROUTER_OVERRIDE}; null where there is none. */
    public JsonNode routerOverride;

    /** Member {@link #NVEXT}, of which the gateway reads hints for routing; null for none. */
    public JsonNode nvext;

    /** {@code nvext.routing_constraints}, null when absent. */
    public JsonNode routingConstraints;

    /** Likely tokens that a chat asks for beside each of its answer. */
    int topLogprobs;

    /** Null when absent: then completions add special tokens and chats do not. */
    public Boolean addSpecialTokens;

    /** Whether {@code /tokenize} is to answer what its tokens are called, too. */
    public boolean returnsTokenStrings;

    /** The members that shape a chat prompt, {@code messages} among them; null for completions. */
    public ObjectNode chat;

    /** The members that a chat is made of; null where the body is one, or has none. */
    public ObjectNode conversation;

    // where stream_options can be edited in place, as byte offsets; -1 = not there
    int afterBrace = -1;
    int optionsNull = -1;
    int optionsAfterBrace = -1;
    boolean optionsEmpty;
    int usageValue = -1;
    int usageValueLength;
    boolean continuousUsage; // means something beside include_usage alone

    InferenceRequest(Route route, byte[] body) {
        this.route = route;
        this.body = body;
    }

    /** Prompts in the body. */
    public int prompts() {
        return 1 + droppedPrompts + moreTexts.size() + moreIds.size() + moreEmbeds;
    }

    /**
     * Lets the prompts go once they have been read: a tree of messages takes ten times its text,
     * and a request may be under way for long.
     */
    public void dropPrompts() {
        droppedPrompts = prompts() - 1;
        chat = null;
        conversation = null;
        promptText = null;
        promptIds = null;
        moreTexts = List.of();
        moreIds = List.of();
        moreEmbeds = 0;
    }

    /** Whether an engine may compute other tokens than those that are read here. */
    public boolean hasOtherTokens() {
        return otherTokens || severalSalts;
    }

    /** Answers that are generated in all. */
    public int sequences() {
        return (int) Math.min((long) prompts() * samples, Integer.MAX_VALUE);
    }

    /**
     * Whether the engine is asked how likely the prompt's own tokens are: then it computes all of
     * the prompt, whatever it holds. Only before the prompts are dropped.
     *
     * <p>By vLLM's rules: of a chat that is echoed it always is, of a completion with {@code
     * logprobs}.
     */
    public boolean isComputedAnew() {
        return promptLogprobs || (echo && (logprobs || chat != null));
    }

    /**
     * Whether the cached tokens that an engine states are what it held of the prompt before. Of a
     * batch they are a sum; several samples find each other's blocks; and an engine that is asked
     * for something of the prompt's own tokens, or for a beam search, states other numbers; as does
     * one that keeps the request's blocks apart from others of the same tokens.
     */
    public boolean statesWhatWasCached() {
        return sequences() == 1 && wholeFor == null && !cachedApart;
    }

    /** Member of the body by which one engine has to compute all of it; null for none. */
    public String wholeMember() {
        return route.canSplit() ? wholeFor : route.prompt;
    }

    JsonNode messages() {
        return chat.get("messages");
    }

    /**
     * The body with {@code stream_options.include_usage} set, all other bytes as the client sent
     * them; a body whose members could not be located is written anew. So is one that asks for
     * usage in every chunk, without this: it would get what an engine does not give it by itself.
     */
    public byte[] bodyWithUsage() throws ApiException, IOException {
        if (continuousUsage) {
            return writtenWithUsage();
        }
        if (usageValue >= 0 && isIn(usageValue)) {
            return splice(usageValue, usageValueLength, TRUE);
        }
        if (optionsAfterBrace > 0 && body[optionsAfterBrace - 1] == '{') {
            return splice(
                    optionsAfterBrace, 0, optionsEmpty ? MEMBER : ascii("\"include_usage\":true,"));
        }
        if (optionsNull >= 0 && isIn(optionsNull) && body[optionsNull] == 'n') {
            return splice(optionsNull, "null".length(), OPTION);
        }
        if (optionsNull < 0 && afterBrace > 0 && body[afterBrace - 1] == '{') {
            return splice(afterBrace, 0, WHOLE_OPTION);
        }
        return writtenWithUsage();
    }

    private byte[] writtenWithUsage() throws ApiException, IOException {
        final ObjectNode tree = Json.tree(body);
        final JsonNode options = tree.get("stream_options");
        final ObjectNode edited =
                options instanceof ObjectNode given ? given : tree.putObject("stream_options");
        edited.put("include_usage", true);
        if (continuousUsage) {
            edited.remove(CONTINUOUS_USAGE);
        }
        return Json.body(tree);
    }

    /**
     * A body without {@link #ROUTER_OVERRIDE}, all other bytes as they were; one whose members
     * could not be located is written anew.
     */
    public static byte[] withoutOverride(byte[] body) throws ApiException, IOException {
        return edited(
                body,
                members -> members.edit().remove(ROUTER_OVERRIDE).apply(),
                tree -> tree.remove(ROUTER_OVERRIDE));
    }

    /**
     * A body that does not say which blocks the engine is to announce, all other bytes as they
     * were; one whose members could not be located is written anew. Blocks that are announced again
     * for a hit are like further copies, which are removed one by one.
     */
    public static byte[] withoutAnnouncements(byte[] body) throws ApiException, IOException {
        return edited(
                body,
                members -> {
                    final VerbatimJson arguments = members.object(EXTRA_ARGUMENTS).orElseThrow();
                    return members.edit()
                            .set(EXTRA_ARGUMENTS, arguments.edit().remove(REPORT_MODE).apply())
                            .apply();
                },
                tree -> ((ObjectNode) tree.get(EXTRA_ARGUMENTS)).remove(REPORT_MODE));
    }

    /**
     * A body that asks for a data-parallel rank, all other bytes as they were; one whose members
     * could not be located is written anew. {@link Route#GENERATE} takes it from the body alone.
     */
    public static byte[] withRank(byte[] body, int rank) throws ApiException, IOException {
        return edited(
                body,
                members -> members.edit().set(RANK, rank).apply(),
                tree -> tree.put(RANK, rank));
    }

    /** Changes some members, by one way where all are located, else by the other. */
    private static byte[] edited(byte[] body, MembersEdit located, Consumer<ObjectNode> anew)
            throws ApiException, IOException {
        try {
            return located.of(VerbatimJson.parse(body)).bytes();
        } catch (MalformedJsonException e) { // a member twice, or a number that only Python reads
            final ObjectNode tree = Json.tree(body);
            anew.accept(tree);
            return Json.body(tree);
        }
    }

    private interface MembersEdit {
        VerbatimJson of(VerbatimJson members) throws MalformedJsonException;
    }

    private boolean isIn(int offset) {
        return offset < body.length && (body[offset] == 'f' || body[offset] == 'n');
    }

    private byte[] splice(int offset, int removed, byte[] inserted) {
        final byte[] edited = new byte[body.length - removed + inserted.length];
        System.arraycopy(body, 0, edited, 0, offset);
        System.arraycopy(inserted, 0, edited, offset, inserted.length);
        System.arraycopy(
                body,
                offset + removed,
                edited,
                offset + inserted.length,
                body.length - offset - removed);
        return edited;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
