package io.kvasir.gateway;

import io.kvasir.gateway.tokens.ChatModel;
import io.kvasir.gateway.tokens.PromptException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Finds out what a request asks to compute: the model and the prompt's tokens. Safe from any
 * thread.
 */
final class PromptReader {
    private static final Logger LOG = LoggerFactory.getLogger(PromptReader.class);

    private final String model;
    private final List<String> loraAdapters;
    private final ChatModel encoder;
    private final AtomicBoolean complained = new AtomicBoolean();

    /**
     * @param encoder null when the gateway has no tokenizer
     */
    PromptReader(GatewayConfig config, ChatModel encoder) {
        this.model = config.get(GatewaySettings.MODEL);
        this.loraAdapters = config.get(GatewaySettings.LORA);
        this.encoder = encoder;
    }

    /**
     * Reads the prompt of a request.
     *
     * @throws ApiException 404 for a model that is not served, 400 for a prompt without tokens or
     *     with a template that needs more than its limits
     */
    RoutedPrompt read(InferenceRequest request, RoutingHeaders overrides) throws ApiException {
        final String lora = adapter(request.model);
        final int[] tokens = tokens(request);
        if (tokens != null && tokens.length == 0) {
            throw ApiException.invalid(
                    request.chat == null ? "prompt" : "messages", "the prompt has no tokens");
        }
        return new RoutedPrompt(tokens, lora, request.cacheSalt, overrides);
    }

    /** The adapter that a model name stands for, null for the base model. */
    String adapter(String name) throws ApiException {
        if (name == null || name.equals(model)) {
            return null;
        }
        if (loraAdapters.contains(name)) {
            return name;
        }
        throw ApiException.modelNotFound(name);
    }

    /** Token ids as the engine computes them; null if they cannot be known. */
    private int[] tokens(InferenceRequest request) throws ApiException {
        try {
            return tokensOrRefusal(request);
        } catch (CancellationException e) {
            throw e;
        } catch (RuntimeException e) {
            if (e instanceof PromptException refusal
                    && refusal.kind() == PromptException.Kind.LIMIT) {
                throw ApiException.invalid(null, refusal.getMessage());
            }
            // the engine has the last word: it may well know a template feature that is unknown
            // here
            if (complained.compareAndSet(false, true)) {
                LOG.warn(
                        "a prompt could not be tokenized and was routed by load alone ({}); later"
                                + " ones are counted in kvasir_untokenized_prompts_total",
                        e.toString());
            }
            return null;
        }
    }

    /**
     * Token ids as the engine computes them.
     *
     * @return null without a tokenizer, or for a prompt that is neither text nor ids
     * @throws PromptException if the chat's tokens cannot be told
     */
    int[] tokensOrRefusal(InferenceRequest request) {
        final int[] tokens;
        if (request.promptIds != null) {
            tokens = request.promptIds;
        } else if (encoder == null || (request.chat == null && request.promptText == null)) {
            return null;
        } else {
            tokens = request.chat == null ? textTokens(request) : chatTokens(request);
        }
        final int keep = request.truncatePromptTokens;
        return keep > 0 && keep < tokens.length
                ? Arrays.copyOfRange(tokens, tokens.length - keep, tokens.length)
                : tokens;
    }

    private int[] textTokens(InferenceRequest request) {
        return encoder.encode(request.promptText, !Boolean.FALSE.equals(request.addSpecialTokens));
    }

    private int[] chatTokens(InferenceRequest request) {
        if (Boolean.TRUE.equals(request.addSpecialTokens)) {
            request.chat.put("add_special_tokens", true);
        }
        return encoder.chatTokens(request.chat);
    }
}
