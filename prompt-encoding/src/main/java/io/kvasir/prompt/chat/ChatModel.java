package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.chat.ChatMessages.MediaMark;
import io.kvasir.prompt.jinja.TemplateException;
import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.prompt.tokenizer.FileFailure;
import io.kvasir.prompt.tokenizer.PromptException;
import io.kvasir.prompt.tokenizer.Tokenizer;
import io.kvasir.prompt.tokenizer.TokenizerException;
import io.kvasir.prompt.tokenizer.Tokenizers;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * A model's tokenizer and chat template: turns requests into the token ids that a vLLM engine
 * computes for them. Safe for use by many threads at once.
 *
 * <p>Follows vLLM with its default flags for models whose prompts come from a Hugging Face
 * template; models with a prompt format in the engine's own code (gpt-oss, DeepSeek-V3.2, Mistral's
 * own tokenizer files) are not covered.
 */
public final class ChatModel implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ChatModel.class);

    /** The words of vLLM, started without {@code --trust-request-chat-template}. */
    private static final String UNTRUSTED =
            "Chat template is passed with request, but --trust-request-chat-template is not set."
                    + " Refused request with untrusted chat template.";

    /** Arguments of the reference implementation that never reach a template. */
    private static final Set<String> NOT_FOR_TEMPLATES =
            Set.of(
                    "conversation",
                    "padding",
                    "truncation",
                    "max_length",
                    "return_tensors",
                    "return_dict",
                    "return_assistant_tokens_mask",
                    "tokenizer_kwargs",
                    "continue_final_message");

    private final String name;
    private final Tokenizer tokenizer;
    private final Map<String, String> specialTokens;
    private final TemplatePolicy policy;
    private final Map<String, CompiledTemplate> templates = new LinkedHashMap<>();
    private final CompiledTemplate ofProcessor; // null for none
    private final TemplateCache requestTemplates;
    private final TemplateTraits traits = new TemplateTraits(this);
    private final PromptMemo memo; // null for none
    private final byte[] identity; // of the tokenizer, where there is a memo

    private ChatModel(ModelFiles files, TemplatePolicy policy, PromptMemo memoOrNull) {
        this.policy = policy;
        memo = memoOrNull;
        identity = memoOrNull == null ? null : files.tokenizerIdentity();
        requestTemplates = new TemplateCache(policy.cacheBytes());
        name = files.name();
        tokenizer = Tokenizers.load(files.tokenizer().json(), name, files.moreTokens());
        specialTokens = Map.copyOf(files.specialTokens());
        files.templates()
                .byName()
                .forEach((key, source) -> templates.put(key, compiled(key, source)));
        final String source = files.templates().ofProcessor();
        ofProcessor = source == null ? null : compiled("of the processor", source);
    }

    private CompiledTemplate compiled(String key, String source) {
        final CompiledTemplate compiled = CompiledTemplate.of(source, policy.limits());
        if (compiled.problem() != null) {
            LOG.warn(
                    "{}: chat template '{}' cannot be used: {}",
                    name,
                    key,
                    compiled.problem().getMessage());
        }
        return compiled;
    }

    /**
     * Loads a model's files: {@code tokenizer.json}, and beside it {@code tokenizer_config.json},
     * {@code chat_template.jinja} (with {@code additional_chat_templates/}), {@code
     * chat_template.json}, {@code special_tokens_map.json} and {@code added_tokens.json} where they
     * exist. A model with a processor is known by {@code processor_config.json}, {@code
     * preprocessor_config.json} or {@code video_preprocessor_config.json}.
     *
     * @param folderOrTokenizerJson the folder, or the {@code tokenizer.json} in it
     * @return the model; a template that cannot be compiled is reported in the log and fails the
     *     chats that need it
     * @throws TokenizerException if the files cannot be read or the tokenizer cannot be loaded
     */
    public static ChatModel load(Path folderOrTokenizerJson) {
        return load(folderOrTokenizerJson, TemplatePolicy.DEFAULT);
    }

    /**
     * Loads a model's files as {@link #load(Path)} does.
     *
     * @param folderOrTokenizerJson the folder, or the {@code tokenizer.json} in it
     * @param policy what chat templates may do
     * @return the model
     * @throws TokenizerException if the files cannot be read or the tokenizer cannot be loaded
     */
    public static ChatModel load(Path folderOrTokenizerJson, TemplatePolicy policy) {
        return load(folderOrTokenizerJson, policy, null);
    }

    /**
     * Loads a model's files as {@link #load(Path)} does.
     *
     * @param folderOrTokenizerJson the folder, or the {@code tokenizer.json} in it
     * @param policy what chat templates may do
     * @param memoOrNull remembers the tokens of prompts, under keys of their own for other
     *     tokenizers and salts; closed with the model; null for none
     * @return the model
     * @throws TokenizerException if the files cannot be read or the tokenizer cannot be loaded
     */
    public static ChatModel load(
            Path folderOrTokenizerJson, TemplatePolicy policy, PromptMemo memoOrNull) {
        try {
            return new ChatModel(ModelFiles.read(folderOrTokenizerJson), policy, memoOrNull);
        } catch (IOException e) {
            throw new TokenizerException(
                    "cannot read the model's tokenizer files at "
                            + folderOrTokenizerJson
                            + ": "
                            + FileFailure.words(e),
                    e);
        }
    }

    /**
     * The model of simulated engines: one token per UTF-8 byte, its id the byte's value, and four
     * special tokens from 256 on.
     */
    public static ChatModel simulated() {
        try {
            return new ChatModel(
                    ModelFiles.of(
                            SimModel.NAME,
                            SimModel.read("tokenizer.json"),
                            SimModel.read("tokenizer_config.json")),
                    TemplatePolicy.DEFAULT,
                    null);
        } catch (IOException e) {
            throw new TokenizerException(
                    "cannot read the simulated model's files: " + FileFailure.words(e), e);
        }
    }

    /** The tokenizer. */
    public Tokenizer tokenizer() {
        return tokenizer;
    }

    /** Whether chats can be rendered at all. */
    public boolean hasChatTemplate() {
        return Stream.concat(templates.values().stream(), Stream.ofNullable(ofProcessor))
                .anyMatch(compiled -> compiled.template() != null);
    }

    /**
     * Token ids of a completion's text prompt, special tokens such as BOS added.
     *
     * @param prompt the text
     * @return fresh array of ids
     */
    public int[] completionTokens(String prompt) {
        return encode(prompt, true);
    }

    /**
     * Token ids of a text. The tokenizer's own rule says which special tokens there are: {@code
     * add_bos_token} and {@code add_eos_token} of {@code tokenizer_config.json} change nothing, as
     * in the engines.
     *
     * @param text the text
     * @param addSpecialTokens whether special tokens such as BOS are added
     * @return fresh array of ids
     */
    public int[] encode(String text, boolean addSpecialTokens) {
        return tokenizer.encode(text, addSpecialTokens);
    }

    /**
     * Token ids of a text that must not be long.
     *
     * @param text the text
     * @param addSpecialTokens whether special tokens such as BOS are added
     * @param maxTokens most of them
     * @return fresh array of ids
     * @throws PromptException of kind LIMIT if there are more
     */
    public int[] encode(String text, boolean addSpecialTokens, int maxTokens) {
        return encode(text, addSpecialTokens, maxTokens, null);
    }

    /**
     * Token ids of a text that must not be long, with the memo's help.
     *
     * @param text the text
     * @param addSpecialTokens whether special tokens such as BOS are added
     * @param maxTokens most of them
     * @param saltOrNull the tenant's: what prompts with other salts have put into the memo is not
     *     seen; null where tenants are not kept apart
     * @return fresh array of ids
     * @throws PromptException of kind LIMIT if there are more
     */
    public int[] encode(String text, boolean addSpecialTokens, int maxTokens, String saltOrNull) {
        return memo == null
                ? tokenizer.encode(text, addSpecialTokens, maxTokens)
                : tokenizer.encode(
                        text,
                        addSpecialTokens,
                        maxTokens,
                        new MemoView(memo, identity, saltOrNull));
    }

    /**
     * Token ids of a chat request; see {@link #chat}.
     *
     * @param request body of the request
     * @param maxTokens most of them
     * @return fresh array of ids
     * @throws PromptException if the request is wrong, or its tokens cannot be known, or there are
     *     more
     */
    public int[] chatTokens(JsonNode request, int maxTokens) {
        return chatTokens(request, maxTokens, null);
    }

    /**
     * Token ids of a chat request, with the memo's help; see {@link #chat}.
     *
     * @param request body of the request
     * @param maxTokens most of them
     * @param saltOrNull the tenant's, as in {@link #encode(String, boolean, int, String)}
     * @return fresh array of ids
     * @throws PromptException if the request is wrong, or its tokens cannot be known, or there are
     *     more
     */
    public int[] chatTokens(JsonNode request, int maxTokens, String saltOrNull) {
        return chatTokens(request, maxTokens, saltOrNull, PromptRules.VLLM);
    }

    /**
     * Token ids that an engine computes for a chat request, with the memo's help; see {@link
     * #chat}. SGLang reads no {@code add_generation_prompt} and no {@code add_special_tokens}.
     *
     * @param request body of the request
     * @param maxTokens most of them
     * @param saltOrNull the tenant's, as in {@link #encode(String, boolean, int, String)}
     * @param rules the engine's
     * @return fresh array of ids
     * @throws PromptException if the request is wrong, or its tokens cannot be known, or there are
     *     more
     */
    public int[] chatTokens(JsonNode request, int maxTokens, String saltOrNull, PromptRules rules) {
        return encode(
                render(request, rules),
                rules == PromptRules.VLLM && flag(request, "add_special_tokens", false),
                maxTokens,
                saltOrNull);
    }

    /**
     * Whether a chat has images or other media, of which an engine makes tokens that are not known
     * here.
     *
     * @param request body of the request
     */
    public static boolean hasMedia(JsonNode request) {
        return ChatMessages.haveMedia(request.path("messages"));
    }

    /**
     * Token ids that a chat with media begins with at vLLM: those before the first of the media, or
     * fewer. The chat is rendered with the media and with a text in their stead; it begins with
     * what both have in common. The last token is left out, as it may be another one with what
     * follows.
     *
     * @param request body of the request, which {@link #hasMedia}
     * @param maxTokens most of them
     * @param saltOrNull the tenant's, as in {@link #encode(String, boolean, int, String)}
     * @return fresh array of ids; may be empty
     * @throws PromptException as {@link #chatTokens(JsonNode, int, String)}
     */
    public int[] tokensBeforeMedia(JsonNode request, int maxTokens, String saltOrNull) {
        final String text = render(request, PromptRules.VLLM, MediaMark.PART);
        final String other = render(request, PromptRules.VLLM, MediaMark.TEXT);
        final int common = Arrays.mismatch(text.toCharArray(), other.toCharArray());
        final int[] tokens =
                encode(
                        text.substring(0, Math.max(0, common)),
                        flag(request, "add_special_tokens", false),
                        maxTokens,
                        saltOrNull);
        return Arrays.copyOf(tokens, Math.max(0, tokens.length - 1));
    }

    /**
     * Token ids of a chat request, however many.
     *
     * @param request body of the request
     * @return fresh array of ids
     * @throws PromptException if the request is wrong, or its tokens cannot be known
     */
    public int[] chatTokens(JsonNode request) {
        return chatTokens(request, Integer.MAX_VALUE);
    }

    /**
     * The chat that vLLM makes of a request of Anthropic's Messages API.
     *
     * @param request body of the request; not changed
     * @return what {@link #chatTokens(JsonNode, int, String)} takes
     * @throws PromptException if the request is wrong, or its chat cannot be known
     */
    public ObjectNode ofMessages(JsonNode request) {
        return ofMessages(request, PromptRules.VLLM);
    }

    /**
     * The chat that an engine makes of a request of Anthropic's Messages API.
     *
     * @param request body of the request; not changed
     * @param rules the engine's
     * @return what {@link #chatTokens(JsonNode, int, String, PromptRules)} takes
     * @throws PromptException if the request is wrong, or its chat cannot be known
     */
    public ObjectNode ofMessages(JsonNode request, PromptRules rules) {
        return MessagesRequest.chat(
                request, traits.mergesSystem(), traits::effortWithoutThinking, rules);
    }

    /**
     * The chat that vLLM makes of a request of OpenAI's Responses API.
     *
     * @param request body of the request; not changed
     * @return what {@link #chatTokens(JsonNode, int, String)} takes
     * @throws PromptException if the request is wrong, or its chat cannot be known
     */
    public ObjectNode ofResponses(JsonNode request) {
        return ResponsesRequest.chat(request);
    }

    /** What became of the sections that were looked up in the memo; null where there is none. */
    public PromptMemoCounts memoCountsOrNull() {
        return memo == null ? null : memo.counts();
    }

    /** Whether encoding cannot be interrupted: it is done by a native library, and slowly. */
    public boolean encodesNatively() {
        return tokenizer.isNative();
    }

    /**
     * Renders and tokenizes a chat request. Read are {@code messages}, {@code tools}, {@code
     * documents}, {@code add_generation_prompt} (true unless given), {@code
     * continue_final_message}, {@code chat_template} (a template or the name of one, where requests
     * are trusted with it), {@code chat_template_kwargs}, {@code reasoning_effort} and {@code
     * add_special_tokens} (false unless given).
     *
     * @param request body of the request; not changed
     * @return text and ids
     * @throws PromptException if the request is wrong, its tokens cannot be known, or it costs too
     *     much
     * @throws java.util.concurrent.CancellationException if the thread is interrupted
     */
    public RenderedPrompt chat(JsonNode request) {
        final String text = render(request);
        return new RenderedPrompt(text, encode(text, flag(request, "add_special_tokens", false)));
    }

    String render(JsonNode request) {
        return render(request, PromptRules.VLLM);
    }

    String render(JsonNode request, PromptRules rules) {
        return render(request, rules, MediaMark.NONE);
    }

    private String render(JsonNode request, PromptRules rules, MediaMark media) {
        final Map<String, Object> variables = variables(request, rules);
        final CompiledTemplate compiled = template(request, variables.get("tools") != null, rules);
        if (compiled.template() == null) {
            if (compiled.problem().kind() == TemplateException.Kind.LIMIT) {
                throw overLimit(compiled.problem());
            }
            throw new PromptException(
                    PromptException.Kind.UNKNOWN_TOKENS,
                    name + ": the chat template cannot be used: " + compiled.problem().getMessage(),
                    compiled.problem());
        }
        return rules == PromptRules.SGLANG
                ? sglangText(request, compiled, variables)
                : vllmText(request, compiled, variables, media);
    }

    private static String sglangText(
            JsonNode request, CompiledTemplate compiled, Map<String, Object> variables) {
        final List<Map<String, Object>> conversation =
                SglangChat.convert(
                        request.path("messages"), compiled.template().expectsPartsAtSglang());
        String answer = "";
        if (flag(request, "continue_final_message", false)) {
            answer = SglangChat.takeAnswer(conversation);
        } else {
            SglangChat.giveAnswerToUser(conversation);
        }
        variables.put("messages", conversation);
        variables.put("add_generation_prompt", true);
        SglangChat.putLowEffort(compiled.source(), variables);
        try {
            return text(compiled, variables) + answer;
        } catch (PromptException e) {
            if (e.kind() != PromptException.Kind.INVALID
                    || !(variables.get("tools") instanceof List<?> tools)) {
                throw e;
            }
            variables.put("tools", SglangChat.functions(tools));
            return text(compiled, variables) + answer;
        }
    }

    private static String vllmText(
            JsonNode request,
            CompiledTemplate compiled,
            Map<String, Object> variables,
            MediaMark media) {
        List<Map<String, Object>> conversation =
                ChatMessages.convert(
                        request.path("messages"), compiled.template().expectsContentParts(), media);
        if (conversation.stream().anyMatch(m -> m.get("role").equals("developer"))
                && !compiled.source().contains("\"developer\"")
                && !compiled.source().contains("'developer'")) {
            conversation = ChatMessages.withoutDevelopers(conversation);
        }
        final boolean open = flag(request, "continue_final_message", false);
        if (open && flag(request, "add_generation_prompt", true)) {
            throw PromptException.invalid(
                    "continue_final_message needs add_generation_prompt to be false");
        }
        final String finalText = open ? FinalMessage.mark(conversation) : null;
        variables.put("messages", conversation);
        final String text = text(compiled, variables);
        return open ? FinalMessage.cut(text, finalText) : text;
    }

    private static String text(CompiledTemplate compiled, Map<String, Object> variables) {
        try {
            return compiled.template().render(variables);
        } catch (TemplateException e) {
            if (e.kind() == TemplateException.Kind.LIMIT) {
                throw overLimit(e);
            }
            throw new PromptException(
                    PromptException.Kind.INVALID,
                    e.kind() == TemplateException.Kind.RAISED
                            ? e.reason()
                            : "the chat template failed at " + e.getMessage(),
                    e);
        }
    }

    private static PromptException overLimit(TemplateException e) {
        return new PromptException(PromptException.Kind.LIMIT, e.reason(), e);
    }

    private Map<String, Object> variables(JsonNode request, PromptRules rules) {
        final Map<String, Object> variables = new LinkedHashMap<>(specialTokens);
        variables.put(
                "tools",
                rules == PromptRules.SGLANG
                        ? SglangChat.tools(request)
                        : ChatMessages.tools(request.path("tools")));
        variables.put("documents", null);
        final JsonNode given = request.path("chat_template_kwargs");
        for (String reserved : new String[] {"chat_template", "tokenize"}) {
            if (given.has(reserved)) {
                throw PromptException.invalid(
                        "chat_template_kwargs: '" + reserved + "' cannot be set");
            }
        }
        given.properties()
                .forEach(
                        entry -> {
                            if ((rules == PromptRules.SGLANG || isSet(entry.getValue()))
                                    && !NOT_FOR_TEMPLATES.contains(entry.getKey())) {
                                variables.put(entry.getKey(), JsonValues.of(entry.getValue()));
                            }
                        });
        if (rules == PromptRules.SGLANG) {
            SglangChat.putEffort(request, variables);
            return variables;
        }
        variables.put("add_generation_prompt", flag(request, "add_generation_prompt", true));
        if (isSet(request.path("documents"))) {
            variables.put("documents", JsonValues.of(request.get("documents")));
        }
        final JsonNode effort = request.path("reasoning_effort");
        if (isSet(effort)) {
            variables.put("reasoning_effort", JsonValues.of(effort));
        }
        if (!effort.isNull() && !effort.isMissingNode() && !given.has("enable_thinking")) {
            variables.put("enable_thinking", !effort.asText().equals("none"));
        }
        return variables;
    }

    /** Null and "auto" count as not given. */
    private static boolean isSet(JsonNode value) {
        return !value.isNull() && !value.isMissingNode() && !value.asText().equals("auto");
    }

    CompiledTemplate template(JsonNode request, boolean tools, PromptRules rules) {
        final String given = request.path("chat_template").textValue();
        if (given != null && !policy.trustRequests()) {
            throw PromptException.unknown(UNTRUSTED);
        }
        if (given != null && templates.containsKey(given) && templates.size() > 1) {
            return templates.get(given);
        }
        if (given != null) {
            final CompiledTemplate known = requestTemplates.get(given);
            if (known != null) {
                return known;
            }
            final CompiledTemplate fresh = CompiledTemplate.of(given, policy.limits());
            requestTemplates.put(fresh);
            return fresh;
        }
        final boolean any = rules == PromptRules.SGLANG; // it has one template for all chats
        if (ofProcessor != null && (any || !tools)) {
            return ofProcessor;
        }
        if (any && !templates.isEmpty()) {
            return templates.values().iterator().next();
        }
        final CompiledTemplate chosen =
                tools && templates.containsKey("tool_use")
                        ? templates.get("tool_use")
                        : templates.get(TemplateFiles.DEFAULT);
        if (chosen == null) {
            throw PromptException.invalid(
                    name
                            + ": the model has no chat template"
                            + (templates.isEmpty() ? "" : " called default")
                            + "; use completions, or add chat_template.jinja beside its tokenizer");
        }
        return chosen;
    }

    private static boolean flag(JsonNode request, String member, boolean defaultValue) {
        final JsonNode value = request.path(member);
        if (value.isNull() || value.isMissingNode()) {
            return defaultValue;
        }
        if (!value.isBoolean()) {
            throw PromptException.invalid(member + ": expected true or false, got " + value);
        }
        return value.booleanValue();
    }

    @Override
    public void close() {
        tokenizer.close();
        if (memo != null) {
            memo.close();
        }
    }
}
