package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.protocol.handoff.HandoffMembers;
import io.kvasir.registry.FailureText;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.Set;

/**
 * Reads of a completion request what routing needs, in one pass over the bytes, and refuses what is
 * not one. Of a member given twice the last counts, as in the engines.
 */
public final class RequestParser {
    /** What a chat template or its caller may look at. */
    private static final Set<String> CHAT_MEMBERS =
            Set.of(
                    "messages",
                    "tools",
                    "tool_choice",
                    "documents",
                    "chat_template",
                    "chat_template_kwargs",
                    "reasoning_effort");

    /** What the chat of a request of the Responses API is made of. */
    private static final Set<String> RESPONSES_MEMBERS =
            Set.of("input", "instructions", "tools", "reasoning", "chat_template_kwargs");

    /** What the chat of a request of the Messages API is made of. */
    private static final Set<String> MESSAGES_MEMBERS =
            Set.of(
                    "messages",
                    "system",
                    "tools",
                    "thinking",
                    "output_config",
                    "chat_template_kwargs");

    private static final int FIRST_IDS = 256;

    /** More than any engine generates for one prompt. */
    private static final int MAX_SAMPLES = 1 << 14;

    private static final Set<String> TRUE_WORDS = Set.of("true", "t", "yes", "y", "on", "1");
    private static final Set<String> FALSE_WORDS = Set.of("false", "f", "no", "n", "off", "0");

    private final InferenceRequest request;
    private final JsonParser json;
    private final TreeMeter trees;
    private int[] ids = new int[FIRST_IDS];
    private boolean promptSeen;
    private boolean promptEmpty; // a list of none, which may be given beside embeddings
    private boolean embedsSeen;
    private int embeds;
    private boolean maxTokens; // whether there is such a limit
    private Boolean maxCompletionTokens; // likewise; null where it is not given
    private int answers = 1;
    private int bestOf = 1;
    private boolean beamSearch;
    private boolean startsInPrompt; // log probabilities, where they are asked for
    private boolean skipsCache;
    private final SequencedMap<String, ApiException> refused = new LinkedHashMap<>(); // by member

    private RequestParser(InferenceRequest request, JsonParser json, long treeBytes) {
        this.request = request;
        this.json = json;
        this.trees = new TreeMeter(json, treeBytes);
        this.maxTokens = request.route == InferenceRequest.Route.COMPLETIONS; // 16 unless given
    }

    /**
     * Parses one body.
     *
     * @throws ApiException 400 with the member and its value when the body is no completion
     *     request, 413 when what is read of it needs too much memory
     */
    public static InferenceRequest parse(InferenceRequest.Route route, byte[] body)
            throws ApiException {
        return parse(route, body, TreeMeter.usualLimit());
    }

    static InferenceRequest parse(InferenceRequest.Route route, byte[] body, long treeBytes)
            throws ApiException {
        final InferenceRequest request = new InferenceRequest(route, body);
        Utf8Body.check(body);
        try (JsonParser json = Json.FACTORY.createParser(body)) {
            new RequestParser(request, json, treeBytes).read();
        } catch (JsonProcessingException e) {
            throw malformed(e);
        } catch (TreeMeter.Exceeded e) {
            throw ApiException.tooLarge(e.getMessage());
        } catch (IOException e) {
            throw ApiException.invalid(null, "cannot read the body: " + FailureText.of(e));
        }
        return request;
    }

    /**
     * Whether a body has a member that is not null; of one given twice the last counts.
     *
     * @throws ApiException 400 if the body is not JSON
     */
    public static boolean has(byte[] body, String member) throws ApiException {
        boolean has = false;
        try (JsonParser json = Json.FACTORY.createParser(body)) {
            if (json.nextToken() == JsonToken.START_OBJECT) {
                while (json.nextToken() == JsonToken.FIELD_NAME) {
                    final boolean isIt = json.currentName().equals(member);
                    final JsonToken value = json.nextToken();
                    json.skipChildren();
                    has = isIt ? value != JsonToken.VALUE_NULL : has;
                }
            }
        } catch (JsonProcessingException e) {
            throw malformed(e);
        } catch (IOException e) {
            throw ApiException.invalid(null, "cannot read the body: " + FailureText.of(e));
        }
        return has;
    }

    /** 400: the body is not JSON. */
    public static ApiException malformed(JsonProcessingException e) {
        final String where =
                e.getLocation() == null
                        ? ""
                        : " at line "
                                + e.getLocation().getLineNr()
                                + ", column "
                                + e.getLocation().getColumnNr();
        return ApiException.invalid(
                null, "the body is not valid JSON" + where + ": " + FailureText.of(e));
    }

    private void read() throws IOException, ApiException {
        if (json.nextToken() != JsonToken.START_OBJECT) {
            throw ApiException.invalid(
                    null,
                    request.body.length == 0
                            ? "the body is empty; a JSON object is needed"
                            : "the body must be a JSON object");
        }
        request.afterBrace = offset() + 1;
        switch (request.route.form) {
            case COMPLETION -> {
                if (request.route == InferenceRequest.Route.CHAT) {
                    request.chat = JsonNodeFactory.instance.objectNode();
                }
            }
            case RESPONSES, MESSAGES ->
                    request.conversation = JsonNodeFactory.instance.objectNode();
            case GENERATE -> maxTokens = true; // 128 where it does not say
            case TOKENS, OTHER -> {}
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            json.nextToken();
            refused.remove(name); // of one given twice the last counts
            try {
                member(name);
            } catch (ApiException e) {
                refused.put(name, e);
                skipMember();
            }
        }
        if (json.currentToken() != JsonToken.END_OBJECT) {
            throw new JsonParseException(json, "unexpected end of input");
        }
        if (json.nextToken() != null) {
            throw ApiException.invalid(null, "the body has something after its JSON object");
        }
        if (!refused.isEmpty()) {
            throw refused.firstEntry().getValue();
        }
        switch (request.route.form) {
            case COMPLETION -> check();
            case GENERATE, TOKENS -> checkGenerate();
            default -> request.limitsOutput = maxTokens;
        }
    }

    private void member(String name) throws IOException, ApiException {
        switch (name) {
            case "model" -> request.model = string(name);
            case "stream" -> request.stream = Boolean.TRUE.equals(bool(name));
            case "cache_salt" -> cacheSalt(name);
            case InferenceRequest.ROUTER_OVERRIDE ->
                    request.routerOverride = trees.<JsonNode>readValueAsTree();
            case InferenceRequest.NVEXT -> nvext();
            case InferenceRequest.EXTRA_ARGUMENTS -> extraArguments();
            case "extra_key", "lora_path" -> request.cachedApart |= isAsked();
            default -> {
                if (HandoffMembers.contains(name)) {
                    request.namesBlocks = name;
                }
                switch (request.route.form) {
                    case COMPLETION -> completionMember(name);
                    case RESPONSES -> responsesMember(name);
                    case MESSAGES -> messagesMember(name);
                    case GENERATE -> generateMember(name);
                    case TOKENS -> tokensMember(name);
                    case OTHER -> json.skipChildren();
                }
            }
        }
    }

    /** Reads on to the end of what is within a member whose value was refused. */
    private void skipMember() throws IOException {
        while (!json.getParsingContext().getParent().inRoot()) {
            json.nextToken();
        }
    }

    private void nvext() throws IOException {
        request.nvext = trees.<JsonNode>readValueAsTree();
        request.strictPriority = hint(request.nvext, "strict_priority");
        request.headStart = hint(request.nvext, "priority");
        request.routingConstraints = request.nvext.get("routing_constraints");
    }

    /** What is kept of answers is one worker's, and the next request may reach another one. */
    private void responsesMember(String name) throws IOException, ApiException {
        switch (name) {
            case "max_output_tokens" -> maxTokens = outputLimit();
            case "truncation" -> {
                if (json.currentToken() == JsonToken.VALUE_STRING
                        && json.getText().equals("auto")) {
                    request.truncates = true;
                    request.truncatePromptTokens = -1;
                }
                json.skipChildren();
            }
            case "previous_response_id", "background" -> {
                if (isAsked()) {
                    throw ApiException.invalid(
                            name,
                            "'"
                                    + name
                                    + "' needs an answer that one worker keeps, and requests go to"
                                    + " any worker; send the whole conversation as 'input'");
                }
            }
            default -> conversationMember(RESPONSES_MEMBERS, name);
        }
    }

    private void messagesMember(String name) throws IOException {
        if (name.equals("max_tokens")) {
            maxTokens = outputLimit();
        } else {
            conversationMember(MESSAGES_MEMBERS, name);
        }
    }

    /** Where ids are given they count, whatever the text is. */
    private void generateMember(String name) throws IOException, ApiException {
        switch (name) {
            case "text" -> {
                if (request.promptIds == null) {
                    prompt(name);
                } else {
                    json.skipChildren();
                }
            }
            case "input_ids" -> {
                if (json.currentToken() != JsonToken.VALUE_NULL) {
                    prompt(name);
                }
            }
            case "input_embeds", "image_data", "video_data", "audio_data", "session_params" ->
                    request.otherTokens |= isAsked();
            case "return_logprob" -> request.logprobs = isAsked();
            case "logprob_start_len" -> {
                startsInPrompt = LaxInteger.read(json, 0) >= 0;
                json.skipChildren();
            }
            case "sampling_params" -> samplingParams();
            default -> json.skipChildren();
        }
    }

    private void tokensMember(String name) throws IOException, ApiException {
        switch (name) {
            case "token_ids" -> prompt(name);
            case "features", "content_parts" -> request.otherTokens |= isAsked();
            case "sampling_params" -> samplingParams();
            default -> json.skipChildren();
        }
    }

    /** Those of a batch may be a list, which is the engine's to read. */
    private void samplingParams() throws IOException {
        if (json.currentToken() != JsonToken.START_OBJECT) {
            json.skipChildren();
            return;
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            json.nextToken();
            switch (name) {
                case "max_new_tokens", "max_tokens" -> maxTokens = outputLimit();
                case "n" -> answers = samples();
                case "prompt_logprobs" -> request.promptLogprobs = isGiven();
                case "skip_reading_prefix_cache" -> skipsCache = isAsked();
                default -> json.skipChildren();
            }
        }
    }

    private void checkGenerate() throws ApiException {
        if (!promptSeen && !request.otherTokens) {
            throw ApiException.invalid(
                    request.route.prompt,
                    request.route.form == InferenceRequest.Form.TOKENS
                            ? "'token_ids' is missing"
                            : "neither 'text' nor 'input_ids' is given");
        }
        request.limitsOutput = maxTokens;
        request.samples = answers;
        if (answers > 1) {
            request.samplesIn = "sampling_params.n";
        }
        // an engine takes nothing of its cache behind the first token that it is asked about
        request.promptLogprobs |= skipsCache || (startsInPrompt && request.logprobs);
        request.wholeFor = request.promptLogprobs ? "sampling_params" : null;
    }

    private void conversationMember(Set<String> members, String name) throws IOException {
        if (members.contains(name)) {
            request.conversation.set(name, trees.<JsonNode>readValueAsTree());
        } else {
            json.skipChildren();
        }
    }

    private void completionMember(String name) throws IOException, ApiException {
        switch (name) {
            case "stream_options" -> streamOptions();
            case "add_special_tokens" -> request.addSpecialTokens = bool(name);
            case "return_token_strs" -> {
                request.returnsTokenStrings = json.currentToken() == JsonToken.VALUE_TRUE;
                json.skipChildren();
            }
            case "truncate_prompt_tokens" -> truncate();
            case "truncation_side" -> {
                request.truncationSide =
                        json.currentToken() == JsonToken.VALUE_NULL ? null : json.getText();
                json.skipChildren();
            }
            case "max_tokens" -> maxTokens = outputLimit();
            case "max_completion_tokens" ->
                    maxCompletionTokens =
                            json.currentToken() == JsonToken.VALUE_NULL ? null : outputLimit();
            case "n" -> answers = samples();
            case "best_of" -> bestOf = samples();
            case "add_generation_prompt", "continue_final_message" -> {
                final Boolean value = bool(name);
                if (request.chat != null) {
                    request.chat.put(name, value);
                }
            }
            case "prompt" -> {
                if (request.chat == null) {
                    prompt(name);
                } else {
                    json.skipChildren();
                }
            }
            case "input_ids" -> {
                final boolean asked = isAsked();
                request.otherTokens = asked && request.chat != null;
            }
            case "prompt_embeds" -> embeds();
            case "top_logprobs" -> topLogprobs();
            case "prompt_logprobs" -> request.promptLogprobs = isGiven();
            case "echo" -> request.echo = isAsked();
            case "use_beam_search" -> beamSearch = isAsked();
            case "logprobs" -> request.logprobs = isGiven();
            default -> {
                if (request.chat != null && CHAT_MEMBERS.contains(name)) {
                    request.chat.set(name, trees.<JsonNode>readValueAsTree());
                } else {
                    json.skipChildren();
                }
            }
        }
    }

    /** What says something of the prompt's tokens needs an engine that computes them. */
    private String wholeFor() {
        if (request.promptLogprobs) {
            return "prompt_logprobs";
        }
        if (request.echo) {
            return "echo";
        }
        return beamSearch ? "use_beam_search" : null;
    }

    private void check() throws ApiException {
        request.samples = Math.max(answers, bestOf);
        if (request.samples > 1) {
            request.samplesIn = answers < bestOf ? "best_of" : "n";
        }
        request.wholeFor = wholeFor();
        if (request.chat == null) {
            if (promptEmpty && embeds == 0) {
                throw empty("prompt");
            }
            if (!promptSeen && !embedsSeen) {
                throw ApiException.invalid("prompt", "'prompt' is missing");
            }
            request.moreEmbeds = promptSeen ? embeds : Math.max(0, embeds - 1);
            if (request.moreEmbeds > 0) {
                request.batchIn = "prompt_embeds";
            }
            request.limitsOutput = maxTokens;
            return;
        }
        request.limitsOutput = maxCompletionTokens == null ? maxTokens : maxCompletionTokens;
        final JsonNode messages = request.chat.get("messages");
        if (messages == null || messages.isNull()) {
            throw ApiException.invalid("messages", "'messages' is missing");
        }
        if (!(messages instanceof ArrayNode list)) {
            throw wrongType("messages", "a list of messages", messages.getNodeType().name());
        }
        if (list.isEmpty()) {
            throw ApiException.invalid("messages", "'messages' is empty");
        }
        for (int i = 0; i < list.size(); i++) {
            if (!(list.get(i) instanceof ObjectNode message)) {
                throw wrongType(
                        "messages[" + i + "]", "an object", list.get(i).getNodeType().name());
            }
            if (!message.path("role").isTextual()) {
                throw ApiException.invalid(
                        "messages[" + i + "].role", "'messages[" + i + "].role' must be a string");
            }
        }
        final JsonNode tools = request.chat.get("tools");
        if (tools != null && !tools.isNull() && !tools.isArray()) {
            throw wrongType("tools", "a list", tools.getNodeType().name());
        }
    }

    /** SGLang takes a list with one for each prompt of a batch. */
    private void cacheSalt(String name) throws IOException, ApiException {
        request.severalSalts =
                json.currentToken() == JsonToken.START_ARRAY
                        && (request.route == InferenceRequest.Route.COMPLETIONS
                                || request.route == InferenceRequest.Route.GENERATE);
        if (request.severalSalts) {
            request.cacheSalt = null;
            json.skipChildren();
        } else {
            request.cacheSalt = string(name);
        }
    }

    private String string(String name) throws IOException, ApiException {
        return switch (json.currentToken()) {
            case VALUE_STRING -> json.getText();
            case VALUE_NULL -> null;
            default -> throw wrongType(name, "a string");
        };
    }

    /** A boolean, or what engines (pydantic) take for one: 0, 1, and words such as "yes". */
    private Boolean bool(String name) throws IOException, ApiException {
        switch (json.currentToken()) {
            case VALUE_TRUE -> {
                return true;
            }
            case VALUE_FALSE -> {
                return false;
            }
            case VALUE_NULL -> {
                return null;
            }
            case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> {
                final double value = json.getDoubleValue();
                if (value == 0 || value == 1) {
                    return value == 1;
                }
            }
            case VALUE_STRING -> {
                final String word = json.getText().toLowerCase(Locale.ROOT);
                if (TRUE_WORDS.contains(word) || FALSE_WORDS.contains(word)) {
                    return TRUE_WORDS.contains(word);
                }
            }
            default -> {
                // no boolean
            }
        }
        throw wrongType(name, "a boolean");
    }

    /** What of a hint is no number is refused where it counts; what is no hint is the engine's. */
    private static String hint(JsonNode nvext, String name) {
        final JsonNode value = nvext.path("agent_hints").path(name);
        if (value.isMissingNode() || value.isNull()) {
            return null;
        }
        return value.isValueNode() ? value.asText() : name;
    }

    /** Answers for each prompt; what is no number is the engine's to refuse. */
    private int samples() throws IOException {
        final int given = Math.clamp(LaxInteger.read(json, 1), 1, MAX_SAMPLES);
        json.skipChildren();
        return given;
    }

    /** What is no number is the engine's to refuse. */
    private void topLogprobs() throws IOException {
        request.topLogprobs = Math.max(0, LaxInteger.read(json, 0));
        json.skipChildren();
    }

    /** Of a number: vLLM reads false as 0, which is not the same as none. */
    private boolean isGiven() throws IOException {
        final JsonToken value = json.currentToken();
        json.skipChildren();
        return value != JsonToken.VALUE_NULL;
    }

    private boolean isAsked() throws IOException {
        final JsonToken value = json.currentToken();
        json.skipChildren();
        return value != JsonToken.VALUE_NULL && value != JsonToken.VALUE_FALSE;
    }

    private void truncate() throws IOException, ApiException {
        request.truncates = json.currentToken() != JsonToken.VALUE_NULL;
        final int given = request.truncates ? LaxInteger.read(json, Integer.MIN_VALUE) : 0;
        if (given < -1) {
            throw wrongType("truncate_prompt_tokens", "an integer of at least -1");
        }
        request.truncatePromptTokens = given;
    }

    /** Whether an answer's length has a limit; what is no number is the engine's to refuse. */
    private boolean outputLimit() throws IOException {
        final boolean limited = LaxInteger.read(json, 0) != 0;
        json.skipChildren();
        return limited;
    }

    private void streamOptions() throws IOException, ApiException {
        request.includeUsage = false;
        request.usageValue = -1;
        request.optionsAfterBrace = -1;
        request.optionsNull = -1;
        request.continuousUsage = false;
        if (json.currentToken() == JsonToken.VALUE_NULL) {
            request.optionsNull = offset();
            return;
        }
        if (json.currentToken() != JsonToken.START_OBJECT) {
            throw wrongType("stream_options", "an object");
        }
        request.optionsAfterBrace = offset() + 1;
        request.optionsEmpty = true;
        ApiException refusedOrNull = null;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            request.optionsEmpty = false;
            final String name = json.currentName();
            json.nextToken();
            if (name.equals(InferenceRequest.CONTINUOUS_USAGE)) {
                request.continuousUsage = isAsked();
            } else if (name.equals("include_usage")) {
                refusedOrNull = null;
                try {
                    includeUsage();
                } catch (ApiException e) {
                    refusedOrNull = e;
                    json.skipChildren();
                }
            } else {
                json.skipChildren();
            }
        }
        if (refusedOrNull != null) {
            throw refusedOrNull;
        }
    }

    private void includeUsage() throws IOException, ApiException {
        request.includeUsage = Boolean.TRUE.equals(bool("stream_options.include_usage"));
        request.usageValue = -1;
        if (json.currentToken().isNumeric() || json.currentToken() == JsonToken.VALUE_STRING) {
            request.afterBrace = -1; // a word for false: such a body is written anew
            request.optionsAfterBrace = -1;
            return;
        }
        request.usageValue = request.includeUsage ? -1 : offset();
        request.usageValueLength = json.getTextLength();
    }

    private void extraArguments() throws IOException {
        request.setsAnnouncements = false;
        if (json.currentToken() != JsonToken.START_OBJECT) {
            json.skipChildren();
            return;
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            request.setsAnnouncements |= json.currentName().equals(InferenceRequest.REPORT_MODE);
            json.nextToken();
            json.skipChildren();
        }
    }

    private void prompt(String name) throws IOException, ApiException {
        promptSeen = true;
        promptEmpty = false;
        request.batchIn = name;
        request.promptText = null;
        request.promptIds = null;
        request.moreTexts = List.of();
        request.moreIds = List.of();
        switch (json.currentToken()) {
            case VALUE_STRING -> request.promptText = json.getText();
            case START_ARRAY -> promptList(name);
            case VALUE_NULL -> promptSeen = false;
            default ->
                    throw wrongType(
                            name, "a string, a list of token ids, or a list of either of them");
        }
    }

    private void promptList(String name) throws IOException, ApiException {
        switch (json.nextToken()) {
            case END_ARRAY -> {
                if (request.route != InferenceRequest.Route.COMPLETIONS) {
                    throw empty(name);
                }
                promptSeen = false;
                promptEmpty = true;
            }
            case VALUE_STRING -> {
                request.promptText = json.getText();
                request.moreTexts =
                        batch(name, JsonToken.VALUE_STRING, "a string", _ -> json.getText());
            }
            case START_ARRAY -> {
                request.promptIds = list(name + "[0]");
                request.moreIds =
                        batch(name, JsonToken.START_ARRAY, "a list of token ids", this::list);
            }
            default -> request.promptIds = ids(name);
        }
    }

    /** Engines take each for a prompt of its own, beside those in another form. */
    private void embeds() throws IOException {
        embedsSeen = json.currentToken() != JsonToken.VALUE_NULL;
        embeds = embedsSeen ? 1 : 0;
        if (json.currentToken() == JsonToken.START_ARRAY) {
            embeds = 0;
            while (json.nextToken() != JsonToken.END_ARRAY) {
                embeds++;
                json.skipChildren();
            }
        } else {
            json.skipChildren();
        }
    }

    private static ApiException empty(String name) {
        return ApiException.invalid(name, "'" + name + "' is empty");
    }

    private interface PromptOf<T> {
        T read(String name) throws IOException, ApiException;
    }

    /** Reads the rest of a batch. */
    private <T> List<T> batch(String of, JsonToken kind, String what, PromptOf<T> prompt)
            throws IOException, ApiException {
        final List<T> prompts = new ArrayList<>();
        for (JsonToken token = json.nextToken();
                token != JsonToken.END_ARRAY;
                token = json.nextToken()) {
            final String name = of + "[" + (prompts.size() + 1) + "]";
            if (token != kind) {
                throw wrongType(name, what + " like the first one");
            }
            prompts.add(prompt.read(name));
        }
        return prompts;
    }

    /** Reads a list of ids that begins with the current token. */
    private int[] list(String name) throws IOException, ApiException {
        json.nextToken();
        return ids(name);
    }

    /** Reads ids from the current token to the end of the list. */
    private int[] ids(String name) throws IOException, ApiException {
        int count = 0;
        for (JsonToken token = json.currentToken();
                token != JsonToken.END_ARRAY;
                token = json.nextToken()) {
            final double id = id(token);
            if (Double.isNaN(id)) {
                throw ApiException.invalid(
                        name,
                        "'"
                                + name
                                + "["
                                + count
                                + "]' must be a token id, an integer in 0.."
                                + Integer.MAX_VALUE
                                + ", but is "
                                + (token == null || token.isStructStart()
                                        ? "a nested value"
                                        : json.getText()));
            }
            if (id < 0 || id > Integer.MAX_VALUE) {
                throw ApiException.invalid(
                        name,
                        "'"
                                + name
                                + "["
                                + count
                                + "]' = "
                                + json.getText()
                                + " is no token id; ids are integers in 0.."
                                + Integer.MAX_VALUE);
            }
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
            }
            ids[count++] = (int) id;
        }
        if (count == 0) {
            throw ApiException.invalid(name, "'" + name + "' is empty");
        }
        return Arrays.copyOf(ids, count);
    }

    /** A token id as engines read it: whole floats and booleans are some, texts none; else NaN. */
    private double id(JsonToken token) throws IOException {
        if (token == JsonToken.VALUE_NUMBER_INT) {
            return json.getNumberType() == JsonParser.NumberType.INT ? json.getIntValue() : -1;
        }
        return token == null || token == JsonToken.VALUE_STRING
                ? Double.NaN
                : LaxInteger.whole(json);
    }

    private int offset() {
        return (int) json.currentTokenLocation().getByteOffset();
    }

    private ApiException wrongType(String name, String wanted) {
        return wrongType(name, wanted, json.currentToken().name());
    }

    private static ApiException wrongType(String name, String wanted, String found) {
        return ApiException.invalid(
                name,
                "'"
                        + name
                        + "' must be "
                        + wanted
                        + ", but is "
                        + switch (found) {
                            case "VALUE_STRING", "STRING" -> "a string";
                            case "VALUE_NUMBER_INT", "VALUE_NUMBER_FLOAT", "NUMBER" -> "a number";
                            case "VALUE_TRUE", "VALUE_FALSE", "BOOLEAN" -> "a boolean";
                            case "VALUE_NULL", "NULL" -> "null";
                            case "START_ARRAY", "ARRAY" -> "a list";
                            default -> "an object";
                        });
    }
}
