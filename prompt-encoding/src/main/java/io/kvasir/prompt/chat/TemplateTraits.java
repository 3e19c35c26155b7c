package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.jinja.TemplateException;
import io.kvasir.prompt.tokenizer.PromptException;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What vLLM finds out about a model's chat template by trying it, for requests of the Messages API.
 * Found out when it is asked for first. Thread-safe.
 */
final class TemplateTraits {
    private static final List<String> EFFORTS = List.of("low", "medium", "high", "xhigh", "max");
    private static final ObjectNode EMPTY = JsonNodeFactory.instance.objectNode();

    private final ChatModel model;
    private volatile Boolean mergesSystem; // null until it is known
    private volatile String effortWithoutThinking; // likewise

    TemplateTraits(ChatModel model) {
        this.model = model;
    }

    /**
     * Whether system messages within a conversation are merged into the leading one: where a
     * template refuses them there, or cannot be tried with messages alone.
     */
    boolean mergesSystem() {
        if (mergesSystem == null) {
            mergesSystem = refusesSystem(false) || refusesSystem(true);
        }
        return mergesSystem;
    }

    private boolean refusesSystem(boolean tools) {
        final CompiledTemplate compiled;
        try {
            compiled = model.template(EMPTY, tools, PromptRules.VLLM);
        } catch (PromptException e) { // there is none
            return true;
        }
        // vLLM tries it in a plain Jinja, without the functions and the tag of chat templates
        if (compiled.template() == null
                || compiled.source().contains("{% generation")
                || compiled.source().contains("strftime_now(")) {
            return true;
        }
        final Map<String, Object> system = Map.of("role", "system", "content", "t");
        final Map<String, Object> user = Map.of("role", "user", "content", "t");
        final Map<String, Object> variables = new LinkedHashMap<>();
        variables.put("messages", List.of(system, user, system, user));
        variables.put("add_generation_prompt", false);
        try {
            compiled.template().render(variables);
            return false;
        } catch (TemplateException e) {
            return true;
        }
    }

    /**
     * The reasoning effort by which a template is asked not to think: {@code none}, or {@code low}
     * where it refuses that or takes it for another effort.
     */
    String effortWithoutThinking() {
        if (effortWithoutThinking == null) {
            final Optional<String> none = prompt("none");
            effortWithoutThinking =
                    none.isEmpty() || EFFORTS.stream().map(this::prompt).anyMatch(none::equals)
                            ? "low"
                            : "none";
        }
        return effortWithoutThinking;
    }

    private Optional<String> prompt(String effort) {
        final ObjectNode chat = JsonNodeFactory.instance.objectNode();
        final ArrayNode messages = chat.putArray("messages");
        messages.addObject().put("role", "user").put("content", "Hi");
        chat.put("reasoning_effort", effort);
        try {
            return Optional.of(model.render(chat));
        } catch (PromptException e) {
            return Optional.empty();
        }
    }
}
