package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.TokenForm;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.prompt.tokenizer.PromptException;
import io.kvasir.router.settings.RouterSettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Finds out what a request asks to compute: the model and the prompt's tokens. Safe from any
 * thread.
 */
public final class PromptReader {
    /** Between the names of a model and of its adapter, as SGLang has them. */
    public static final char ADAPTER_MARK = ':';

    private static final Logger LOG = LoggerFactory.getLogger(PromptReader.class);
    private static final int[] NONE = {};

    private final String model;
    private final List<String> loraAdapters;
    private final int blockSize;
    private final ChatModel encoder;
    private final IntSupplier maxModelLength;
    private final BooleanSupplier someTakeTokens;
    private final Supplier<PromptRules> rules;
    private final Predicate<String> listedAdapters;
    private final AtomicBoolean complained = new AtomicBoolean();

    /**
     * @param encoder null when the gateway has no tokenizer
     * @param maxModelLength most tokens of a prompt that a worker takes, {@link
     *     UsageReader#UNKNOWN} if that is not known
     * @param someTakeTokens whether a worker is sent token ids
     * @param rules by which the workers make prompts of chats
     * @param listedAdapters whether a worker has listed an adapter, which is served then beside
     *     those that are configured
     */
    public PromptReader(
            GatewayConfig config,
            ChatModel encoder,
            IntSupplier maxModelLength,
            BooleanSupplier someTakeTokens,
            Supplier<PromptRules> rules,
            Predicate<String> listedAdapters) {
        this.model = config.get(GatewaySettings.MODEL);
        this.loraAdapters = config.get(GatewaySettings.LORA);
        this.blockSize = config.get(RouterSettings.BLOCK_SIZE);
        this.encoder = encoder;
        this.maxModelLength = maxModelLength;
        this.someTakeTokens = someTakeTokens;
        this.rules = rules;
        this.listedAdapters = listedAdapters;
    }

    /**
     * Reads the prompt of a request, which does not keep it.
     *
     * @throws ApiException 404 for a model that is not served, 400 for a prompt without tokens or
     *     with a template that needs more than its limits, or with more tokens than the model takes
     */
    public RoutedPrompt read(InferenceRequest request, RoutingHeaders overrides, String requestId)
            throws ApiException {
        final String lora = adapter(request.model);
        final List<int[]> prompts = someTakeTokens.getAsBoolean() ? new ArrayList<>() : null;
        final PromptRules byRules = rules.get(); // once: another worker may be met meanwhile
        boolean beginning = false;
        int[] tokens = null;
        if (!request.hasOtherTokens()) {
            try {
                completeChat(request, byRules);
                beginning = hasMedia(request, byRules);
                tokens = beginning ? beforeMedia(request) : all(request, byRules, prompts);
            } catch (CancellationException e) {
                throw e;
            } catch (RuntimeException e) {
                checkLimit(e);
                sayUntokenized(e, requestId);
            }
        }
        if (tokens != null && tokens.length == 0) {
            throw ApiException.invalid(request.route.prompt, "the prompt has no tokens");
        }
        // each answer has a block of its own from its first token on; the first answer's comes with
        // the booking
        final long decodeTokens = (request.sequences() - 1L) * blockSize;
        final TokenForm tokenForm =
                prompts == null
                        ? null
                        : tokens == null || beginning
                                ? TokenForm.unknown(request, encoder != null)
                                : TokenForm.of(request, prompts);
        final boolean computedAnew = request.isComputedAnew();
        request.dropPrompts();
        return new RoutedPrompt(
                tokens,
                beginning,
                (int) Math.min(decodeTokens, Integer.MAX_VALUE),
                !request.stream,
                request.prompts(),
                computedAnew,
                lora,
                request.cacheSalt,
                overrides,
                tokenForm);
    }

    /** The name of the model that a request asks for, given that it is served. */
    public String servedModel(String nameOrNull) {
        return nameOrNull == null ? model : nameOrNull;
    }

    /**
     * The adapter that a model name stands for, by its own name, as vLLM is asked for it, or behind
     * that of the model and a colon, as SGLang is.
     *
     * @return null for the base model
     * @throws ApiException 404 for a name that is not served
     */
    public String adapter(String name) throws ApiException {
        if (name == null || name.equals(model)) {
            return null;
        }
        if (isAdapter(name)) {
            return name;
        }
        final int behind = model.length() + 1;
        if (name.startsWith(model + ADAPTER_MARK) && isAdapter(name.substring(behind))) {
            return name.substring(behind);
        }
        throw ApiException.modelNotFound(name);
    }

    private boolean isAdapter(String name) {
        return loraAdapters.contains(name) || listedAdapters.test(name);
    }

    /** Token ids of a chat before the first of its media; null where there are none. */
    private int[] beforeMedia(InferenceRequest request) {
        final int[] known =
                encoder.tokensBeforeMedia(request.chat, maxTokens(request), request.cacheSalt);
        return known.length == 0 ? null : known;
    }

    /**
     * Token ids as the engine computes them; null if they cannot be known.
     *
     * @param prompts gets those of each prompt; null if they are not needed
     */
    private int[] all(InferenceRequest request, PromptRules byRules, List<int[]> prompts)
            throws ApiException {
        final int maxTokens = maxTokens(request);
        final int[] first = tokens(request, maxTokens, byRules);
        if (prompts != null && first != null) {
            prompts.add(first);
        }
        return first == null || request.prompts() == 1
                ? first
                : batch(first, request, maxTokens, prompts);
    }

    private int maxTokens(InferenceRequest request) {
        return request.truncates ? Integer.MAX_VALUE : maxTokens();
    }

    private static void checkLimit(RuntimeException e) throws ApiException {
        if (e instanceof PromptException refusal && refusal.kind() == PromptException.Kind.LIMIT) {
            throw ApiException.invalid(null, refusal.getMessage());
        }
    }

    /**
     * The engine has the last word on such a prompt: it may well know a template feature that is
     * unknown here.
     */
    private void sayUntokenized(RuntimeException e, String requestId) {
        if (complained.compareAndSet(false, true)) {
            LOG.atWarn()
                    .addKeyValue(RequestRecord.LOG_KEY, requestId)
                    .log(
                            "{}: the prompt could not be tokenized and is routed by load alone"
                                    + " ({}); later ones are counted in"
                                    + " kvasir_untokenized_prompts_total, the reasons are logged at"
                                    + " DEBUG",
                            requestId,
                            e instanceof PromptException refusal
                                    ? refusal.kind()
                                    : e.getClass().getSimpleName());
        }
        if (LOG.isDebugEnabled()) { // the message may have the prompt's text
            LOG.atDebug()
                    .addKeyValue(RequestRecord.LOG_KEY, requestId)
                    .log("{}: not tokenized: {}", requestId, LogText.of(e.toString()));
        }
    }

    /**
     * Token ids as the engine computes them.
     *
     * @return null without a tokenizer, or for a prompt that is neither text nor ids
     * @throws PromptException if the chat's tokens cannot be known
     */
    public int[] tokensOrRefusal(InferenceRequest request) {
        final PromptRules byRules = rules.get();
        completeChat(request, byRules);
        return tokens(request, Integer.MAX_VALUE, byRules);
    }

    /**
     * What tokens are called, as a model's own tokenizer writes them.
     *
     * @return null without a tokenizer; an item is null where no token has that id
     */
    public String[] namesOf(int[] tokens) {
        return encoder == null
                ? null
                : Arrays.stream(tokens)
                        .mapToObj(encoder.tokenizer()::contentOf)
                        .toArray(String[]::new);
    }

    /** The first prompt's. */
    private int[] tokens(InferenceRequest request, int maxTokens, PromptRules byRules) {
        if (request.promptIds != null) {
            return kept(request, request.promptIds, false);
        }
        if (encoder == null) {
            return null;
        }
        if (request.promptText != null) {
            return textTokens(request, request.promptText, maxTokens);
        }
        return request.chat == null ? null : chatTokens(request, maxTokens, byRules);
    }

    /** Whether the prompt is a chat with media whose beginning the engine takes as it is. */
    private boolean hasMedia(InferenceRequest request, PromptRules byRules) {
        return encoder != null
                && request.chat != null
                && !request.truncates
                && byRules == PromptRules.VLLM
                && ChatModel.hasMedia(request.chat);
    }

    /** Makes the chat that a prompt is made of what the engine makes its tokens from. */
    private void completeChat(InferenceRequest request, PromptRules byRules) {
        if (encoder != null && request.conversation != null) {
            request.chat = chat(request, byRules);
        }
        if (request.chat != null && Boolean.TRUE.equals(request.addSpecialTokens)) {
            request.chat.put("add_special_tokens", true);
        }
    }

    /** The chat that the engine makes of another API's conversation. */
    private ObjectNode chat(InferenceRequest request, PromptRules byRules) {
        return request.route.form == InferenceRequest.Form.MESSAGES
                ? encoder.ofMessages(request.conversation, byRules)
                : encoder.ofResponses(request.conversation);
    }

    private int maxTokens() {
        final int known = maxModelLength.getAsInt();
        return known == UsageReader.UNKNOWN ? Integer.MAX_VALUE : known;
    }

    /**
     * What a batch is to be booked as: its first prompt, which may be found in caches, and of each
     * further one what follows the tokens that it has in common with the first.
     *
     * @param prompts gets all of each further one; null if that is not needed
     */
    private int[] batch(int[] first, InferenceRequest request, int maxTokens, List<int[]> prompts) {
        final List<int[]> parts = new ArrayList<>(request.prompts());
        parts.add(first);
        for (int[] ids : request.moreIds) {
            parts.add(own(first, kept(request, ids, false)));
        }
        for (String text : request.moreTexts) {
            final int[] ids = textTokens(request, text, maxTokens);
            if (prompts != null) {
                prompts.add(ids);
            }
            parts.add(own(first, ids));
        }
        final int[] all = new int[Math.toIntExact(parts.stream().mapToLong(p -> p.length).sum())];
        int at = 0;
        for (int[] part : parts) {
            System.arraycopy(part, 0, all, at, part.length);
            at += part.length;
        }
        return all;
    }

    private static int[] own(int[] first, int[] tokens) {
        final int common = Arrays.mismatch(first, tokens);
        return common <= 0 ? common == 0 ? tokens : NONE : rest(tokens, common);
    }

    private static int[] rest(int[] tokens, int from) {
        return Arrays.copyOfRange(tokens, from, tokens.length);
    }

    /**
     * What the engine keeps of a prompt.
     *
     * @param marked whether the tokenizer has added special tokens, which stay unless the request
     *     names a side
     */
    private int[] kept(InferenceRequest request, int[] tokens, boolean marked) {
        final int given = request.truncatePromptTokens;
        // engines hold one token back for an answer whose length has a limit
        final int keep = given >= 0 ? given : maxTokens() - (request.limitsOutput ? 1 : 0);
        if (keep <= 0 || keep >= tokens.length) {
            return tokens;
        }
        if (marked && request.truncationSide == null) {
            return encoder.tokenizer().keepLast(tokens, keep);
        }
        return "right".equals(request.truncationSide)
                ? Arrays.copyOf(tokens, keep)
                : rest(tokens, tokens.length - keep);
    }

    private int[] textTokens(InferenceRequest request, String text, int maxTokens) {
        final boolean marked = !Boolean.FALSE.equals(request.addSpecialTokens);
        return kept(request, encoder.encode(text, marked, maxTokens, request.cacheSalt), marked);
    }

    private int[] chatTokens(InferenceRequest request, int maxTokens, PromptRules byRules) {
        final boolean marked = Boolean.TRUE.equals(request.addSpecialTokens);
        return kept(
                request,
                encoder.chatTokens(request.chat, maxTokens, request.cacheSalt, byRules),
                marked);
    }
}
