package io.kvasir.gateway;

import io.kvasir.core.closing.Closing;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.HeapLimits;
import io.kvasir.gateway.log.LogText;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.prompt.chat.TemplatePolicy;
import io.kvasir.prompt.jinja.TemplateLimits;
import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoConfig;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.prompt.memo.PromptMemoProvider;
import io.kvasir.prompt.tokenizer.TokenizerException;
import io.kvasir.registry.FailureText;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Tokenizers and chat templates of a gateway's models, in their order. */
final class Encoders implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Encoders.class);

    private final List<ChatModel> all; // null for a model without
    private final List<ChatModel> owned = new ArrayList<>();

    private Encoders(List<ChatModel> all) {
        this.all = all;
    }

    /**
     * Loads those that a configuration names.
     *
     * @throws GatewayException if one cannot be loaded; the message names it
     */
    static Encoders load(GatewayConfig config) {
        final Encoders encoders = new Encoders(new ArrayList<>());
        try {
            for (GatewayConfig model : config.models()) {
                final ChatModel loaded = encoder(model);
                encoders.all.add(loaded);
                if (loaded != null) {
                    encoders.owned.add(loaded);
                }
            }
            return encoders;
        } catch (Throwable t) {
            Closing.after(t, encoders);
            throw t;
        }
    }

    /** That of a gateway of one model, or null; stays the caller's. */
    static Encoders of(ChatModel encoderOrNull) {
        return new Encoders(Collections.singletonList(encoderOrNull));
    }

    private static ChatModel encoder(GatewayConfig config) {
        if (config.get(GatewaySettings.TOKENIZER) == null) {
            LOG.warn(
                    "no tokenizer is set for {}: prompts that are not ids are routed by load alone",
                    LogText.of(config.get(GatewaySettings.MODEL)));
            return null;
        }
        final PromptMemo memo = memoOrNull(config);
        try {
            return load(config, memo);
        } catch (GatewayException e) {
            Closing.after(e, memo);
            throw e;
        }
    }

    /**
     * Loads those that a configuration names, and lets them go.
     *
     * @throws GatewayException if one cannot be loaded; the message names it
     */
    static void check(GatewayConfig config) {
        for (GatewayConfig model : config.models()) {
            if (model.get(GatewaySettings.TOKENIZER) != null) {
                load(model, null).close();
            }
        }
    }

    private static ChatModel load(GatewayConfig config, PromptMemo memoOrNull) {
        try {
            return ChatModel.load(
                    config.get(GatewaySettings.TOKENIZER).toString().equals(SimModel.KEYWORD)
                            ? SimModel.files()
                            : config.get(GatewaySettings.TOKENIZER),
                    templates(config),
                    memoOrNull);
        } catch (TokenizerException e) {
            throw new GatewayException(
                    "cannot load the tokenizer: "
                            + e.getMessage()
                            + "; tokenizer must name the model's folder or its tokenizer.json",
                    e);
        }
    }

    /** What remembers the tokens of prompts; null where nothing is to. */
    private static PromptMemo memoOrNull(GatewayConfig config) {
        final Path folder = memoFolderOrNull(config);
        if (folder == null) {
            return null;
        }
        try {
            return PromptMemoProvider.openFirst(
                    new PromptMemoConfig(
                            folder,
                            config.get(GatewaySettings.PROMPT_MEMO_ENTRIES),
                            config.get(GatewaySettings.PROMPT_MEMO_TTL)));
        } catch (IOException e) {
            throw unusableMemo(folder, e);
        }
    }

    /** Where the tokens of a model's prompts are remembered; null where they are not. */
    static Path memoFolderOrNull(GatewayConfig model) {
        return model.get(GatewaySettings.TOKENIZER) == null
                        || model.get(GatewaySettings.PROMPT_MEMO_ENTRIES) == 0
                ? null
                : model.get(GatewaySettings.SHARED_MEMORY_DIR);
    }

    /** Says that they cannot be remembered there. */
    static GatewayException unusableMemo(Path folder, IOException cause) {
        return new GatewayException(
                GatewaySettings.SHARED_MEMORY_DIR.name()
                        + "="
                        + folder
                        + " cannot be used: "
                        + FailureText.withFile(cause),
                cause);
    }

    private static TemplatePolicy templates(GatewayConfig config) {
        final Long memory = config.get(GatewaySettings.TEMPLATE_MAX_MEMORY_BYTES);
        return new TemplatePolicy(
                config.get(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE),
                new TemplateLimits(
                        config.get(GatewaySettings.TEMPLATE_MAX_STEPS),
                        config.get(GatewaySettings.TEMPLATE_MAX_OUTPUT_CHARS),
                        memory == null
                                ? Math.min(
                                        TemplateLimits.DEFAULT.maxMemoryBytes(), HeapLimits.share())
                                : memory,
                        config.get(GatewaySettings.TEMPLATE_MAX_DEPTH)),
                config.get(GatewaySettings.TEMPLATE_CACHE_BYTES));
    }

    /** That of a model by its number; null where it has none. */
    ChatModel get(int model) {
        return all.get(model);
    }

    /** Whether each of them encodes with the native library, which takes several times as long. */
    boolean allNative() {
        return all.stream().allMatch(each -> each != null && each.encodesNatively());
    }

    /** What became of sections that were looked up in memos, of all models; null without memos. */
    PromptMemoCounts memoCountsOrNull() {
        PromptMemoCounts sum = null;
        for (ChatModel each : all) {
            final PromptMemoCounts counts = each == null ? null : each.memoCountsOrNull();
            if (counts != null) {
                sum = sum == null ? counts : sum.plus(counts);
            }
        }
        return sum;
    }

    /** Closes those that were loaded here. Safe to call twice. */
    @Override
    public void close() {
        Closing.all(owned);
        owned.clear();
    }
}
