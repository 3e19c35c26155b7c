package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.io.JsonStringEncoder;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Reads of an answer, or of one event of a streamed answer, what the gateway keeps: whether it
 * carries an output token and what usage the engine states. One per answer, reused for each event;
 * not thread-safe.
 */
public final class UsageReader {
    private static final String FINGERPRINT = "system_fingerprint";

    /** A count that the engine did not state. */
    public static final int UNKNOWN = -1;

    private String type = ""; // of the object just read
    private boolean choicesSeen;
    private boolean choicesEmpty;
    private boolean outputToken;
    private boolean usageSeen;
    private String fingerprint; // null where the object says none
    private int promptTokens = UNKNOWN;
    private int completionTokens = UNKNOWN;
    private int cachedTokens = UNKNOWN;
    private int cachedAt; // where that number stands in the bytes just read
    private int cachedDigits;
    private int start;

    /**
     * Reads one JSON object. What the last usage said stays until another one is read.
     *
     * @return false if it is not JSON; then only what stood before the fault was read
     */
    public boolean read(byte[] bytes, int offset, int length) {
        type = "";
        choicesSeen = false;
        choicesEmpty = false;
        outputToken = false;
        usageSeen = false;
        fingerprint = null;
        cachedDigits = 0;
        start = offset;
        try (JsonParser json = Json.FACTORY.createParser(bytes, offset, length)) {
            if (json.nextToken() != JsonToken.START_OBJECT) {
                return false;
            }
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                final String name = json.currentName();
                final JsonToken value = json.nextToken();
                if (name.equals("choices") && value == JsonToken.START_ARRAY) {
                    choices(json);
                } else if ((name.equals("usage") || name.equals("meta_info")) // SGLang's own
                        && value == JsonToken.START_OBJECT) {
                    usage(json);
                } else if (name.equals("type") && value == JsonToken.VALUE_STRING) {
                    type = json.getText();
                } else if ((name.equals("message") || name.equals("response"))
                        && value == JsonToken.START_OBJECT) {
                    nested(json);
                } else if (name.equals(FINGERPRINT) && value == JsonToken.VALUE_STRING) {
                    fingerprint = json.getText();
                } else {
                    json.skipChildren();
                }
            }
            return true;
        } catch (IOException e) {
            return false; // the client gets the bytes as they are and sees the same fault
        }
    }

    /** Usage in the answer that an event tells of. */
    private void nested(JsonParser json) throws IOException {
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            if (json.nextToken() == JsonToken.START_OBJECT && name.equals("usage")) {
                usage(json);
            } else {
                json.skipChildren();
            }
        }
    }

    private void choices(JsonParser json) throws IOException {
        choicesSeen = true;
        choicesEmpty = true;
        while (json.nextToken() == JsonToken.START_OBJECT) {
            choicesEmpty = false;
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                final String name = json.currentName();
                final JsonToken value = json.nextToken();
                switch (name) {
                    case "text" -> outputToken |= value == JsonToken.VALUE_STRING;
                    case "token_ids" -> outputToken |= isList(json);
                    case "finish_reason" -> outputToken |= value == JsonToken.VALUE_STRING;
                    case "delta" -> {
                        if (value == JsonToken.START_OBJECT) {
                            delta(json);
                        }
                    }
                    default -> json.skipChildren();
                }
            }
        }
    }

    /** Whether the current value is a list with something in it; it is skipped. */
    private static boolean isList(JsonParser json) throws IOException {
        if (json.currentToken() != JsonToken.START_ARRAY) {
            json.skipChildren();
            return false;
        }
        boolean some = false;
        while (json.nextToken() != JsonToken.END_ARRAY) {
            some = true;
            json.skipChildren();
        }
        return some;
    }

    /**
     * The opening event of a chat carries the role and no token yet; every other one carries a
     * token.
     */
    private void delta(JsonParser json) throws IOException {
        boolean role = false;
        boolean content = false;
        boolean nonEmpty = false;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            final JsonToken value = json.nextToken();
            switch (name) {
                case "role" -> role = true;
                case "content", "reasoning_content", "reasoning", "refusal" -> {
                    content |= value == JsonToken.VALUE_STRING;
                    nonEmpty |= value == JsonToken.VALUE_STRING && json.getTextLength() > 0;
                }
                case "tool_calls", "function_call" -> {
                    nonEmpty |= value != JsonToken.VALUE_NULL;
                    json.skipChildren();
                }
                default -> json.skipChildren();
            }
        }
        outputToken |= nonEmpty || (content && !role);
    }

    private void usage(JsonParser json) throws IOException {
        usageSeen = true;
        promptTokens = UNKNOWN;
        completionTokens = UNKNOWN;
        cachedTokens = UNKNOWN;
        long beside = 0; // prompt tokens that the Messages API does not count as input
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            final JsonToken value = json.nextToken();
            switch (name) {
                case "prompt_tokens", "input_tokens" -> promptTokens = count(json);
                case "completion_tokens", "output_tokens" -> completionTokens = count(json);
                case "cache_read_input_tokens" -> {
                    cachedTokens = count(json);
                    beside += Math.max(0, cachedTokens);
                }
                case "cached_tokens" -> cachedTokens = count(json);
                case "cache_creation_input_tokens" -> beside += Math.max(0, count(json));
                case "prompt_tokens_details", "input_tokens_details" -> {
                    if (value == JsonToken.START_OBJECT) {
                        details(json);
                    }
                }
                default -> json.skipChildren();
            }
        }
        if (promptTokens >= 0) {
            final long all = promptTokens + beside;
            promptTokens = all > Integer.MAX_VALUE ? UNKNOWN : (int) all;
        }
    }

    private void details(JsonParser json) throws IOException {
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final boolean isCached = json.currentName().equals("cached_tokens");
            json.nextToken();
            if (isCached) {
                cachedTokens = count(json);
                final long at = json.currentTokenLocation().getByteOffset();
                if (cachedTokens >= 0 && at >= 0) { // it is known in UTF-8 alone
                    cachedAt = start + (int) at;
                    cachedDigits = json.getTextLength();
                }
            } else {
                json.skipChildren();
            }
        }
    }

    private static int count(JsonParser json) throws IOException {
        if (json.currentToken() != JsonToken.VALUE_NUMBER_INT) {
            json.skipChildren();
            return UNKNOWN;
        }
        return json.getIntValue();
    }

    /**
     * Has the object that was just read state another number of cached tokens, in as many bytes:
     * blanks follow a number of fewer digits. What this reader has read stays.
     *
     * @param bytes those that were read
     * @param cached {@link #UNKNOWN} leaves what is stated
     * @return false if nothing was changed: nothing is known, the object states no such number, or
     *     it has fewer digits than {@code cached}
     */
    public boolean restate(byte[] bytes, int cached) {
        if (cached < 0) {
            return false;
        }
        final byte[] digits = Integer.toString(cached).getBytes(StandardCharsets.US_ASCII);
        if (digits.length > cachedDigits) {
            return false;
        }
        System.arraycopy(digits, 0, bytes, cachedAt, digits.length);
        Arrays.fill(bytes, cachedAt + digits.length, cachedAt + cachedDigits, (byte) ' ');
        return true;
    }

    /** Member {@code type} of the object just read; empty where there is none. */
    String type() {
        return type;
    }

    /** The object just read says what was used and nothing else. */
    boolean isUsageOnly() {
        return usageSeen && choicesSeen && choicesEmpty;
    }

    /**
     * The member of the object just read that says which engine it is, to be put before others.
     *
     * @return with a comma behind it; empty where there is none
     */
    byte[] fingerprint() {
        return fingerprint == null
                ? new byte[0]
                : ('"'
                                + FINGERPRINT
                                + "\":\""
                                + new String(
                                        JsonStringEncoder.getInstance().quoteAsString(fingerprint))
                                + "\",")
                        .getBytes(StandardCharsets.UTF_8);
    }

    /** The object just read has at least one choice. */
    boolean hasChoice() {
        return choicesSeen && !choicesEmpty;
    }

    /** The object just read shows that prefill is over. */
    boolean hasOutputToken() {
        return outputToken;
    }

    /** Prompt tokens by the last usage, or {@link #UNKNOWN}. */
    public int promptTokens() {
        return promptTokens;
    }

    /** Output tokens by the last usage, or {@link #UNKNOWN}. */
    public int completionTokens() {
        return completionTokens;
    }

    /** Prompt tokens that the engine took from its cache, or {@link #UNKNOWN}. */
    public int cachedTokens() {
        return cachedTokens;
    }
}
