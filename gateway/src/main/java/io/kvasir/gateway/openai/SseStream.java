package io.kvasir.gateway.openai;

import io.kvasir.protocol.sse.SseEvents;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.function.IntSupplier;

/**
 * Passes a stream of server-sent events through in whole events and reads from each: the first
 * output token, the usage and the end mark. An event is held back until its blank line has arrived,
 * so that a stream that breaks off can still be ended by an error event. Lines end in LF or CR LF.
 *
 * <p>{@link SseEvents} cuts the stream; bytes of events are not changed but for the number of
 * cached tokens, where another one is given; the one event that may be left out is the usage that
 * the gateway itself asked for. vLLM says its fingerprint in that event then, else in the one that
 * ends a choice: there it is put back, for which that event waits for the next. One thread at a
 * time.
 */
public final class SseStream {
    private static final byte[] DONE = "[DONE]".getBytes(StandardCharsets.US_ASCII);

    /** Of the events of other APIs, those that end a stream. */
    private static final Set<String> LAST_TYPES =
            Set.of(
                    "message_stop",
                    "response.completed",
                    "response.incomplete",
                    "response.failed",
                    "response.cancelled");

    private static final byte[] USAGE = "\"usage\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] FINISH = "\"finish_reason\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] FINGERPRINT =
            "\"system_fingerprint\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ERROR = "{\"error\"".getBytes(StandardCharsets.US_ASCII);

    private final SseEvents events = new SseEvents(this::inspect);
    private final UsageReader reader = new UsageReader();
    private final InferenceRequest.Form form;
    private final boolean dropUsage;
    private final IntSupplier cachedTokens;
    private boolean firstToken;
    private boolean done;
    private int errorStatus; // 0 without an error event
    private byte[] error; // null without one
    private int outputEvents;

    /**
     * @param form of the API whose events these are
     * @param dropUsage leave out the event that carries usage and no choice
     * @param cachedTokens what usage is to state of cached tokens, asked when it passes; {@link
     *     UsageReader#UNKNOWN} leaves what it states
     */
    public SseStream(InferenceRequest.Form form, boolean dropUsage, IntSupplier cachedTokens) {
        this.form = form;
        this.dropUsage = dropUsage;
        this.cachedTokens = cachedTokens;
    }

    /** Whether an answer of this content type, which may be null, is a stream of events. */
    public static boolean isType(String contentTypeOrNull) {
        return contentTypeOrNull != null
                && contentTypeOrNull.toLowerCase(Locale.ROOT).startsWith("text/event-stream");
    }

    /**
     * Takes the next bytes of the stream.
     *
     * @param chunk consumed
     */
    public void accept(ByteBuffer chunk) {
        events.accept(chunk);
    }

    /** Bytes of whole events that wait to be sent on. */
    public int readyBytes() {
        return events.readyBytes();
    }

    /**
     * Hands out the whole events that have come since the last time, in the same bytes.
     *
     * @return may be empty; valid until the next call
     */
    public ByteBuffer takeReady() {
        return events.takeReady();
    }

    /** Hands out everything: whole events, and bytes of an event whose end never came. */
    public ByteBuffer takeAll() {
        return events.takeAll();
    }

    /**
     * Reads an event.
     *
     * @return whether it is to be passed on
     */
    private boolean inspect(byte[] buffer, int from, int to) {
        if (startsWith(buffer, DONE, from, to)) {
            done = true;
            return true;
        }
        if (startsWith(buffer, ERROR, from, to)) {
            errorStatus = ErrorEvent.status(buffer, from, to - from);
            error = Arrays.copyOfRange(buffer, from, to);
            return true;
        }
        if (form.hasTypedEvents()) {
            inspectTyped(buffer, from, to);
            return true;
        }
        if (form == InferenceRequest.Form.GENERATE) {
            inspectGenerated(buffer, from, to);
            return true;
        }
        if (dropUsage && endsChoice(buffer, from, to)) {
            events.holdBack(from + 1);
        }
        final boolean mayHaveUsage = contains(buffer, USAGE, from, to);
        if (firstToken && !mayHaveUsage) {
            outputEvents++; // after the first token every event carries one
            return true;
        }
        if (reader.read(buffer, from, to - from) && mayHaveUsage) {
            reader.restate(buffer, cachedTokens.getAsInt());
        }
        if (reader.hasOutputToken()) {
            firstToken = true;
        }
        if (reader.hasChoice() && firstToken) {
            outputEvents++;
        }
        if (!dropUsage || !reader.isUsageOnly()) {
            return true;
        }
        events.addToHeld(reader.fingerprint());
        return false;
    }

    /** Whether it says why its choice ends, and no fingerprint, for which it has room then. */
    private static boolean endsChoice(byte[] buffer, int from, int to) {
        final int finish = indexOf(buffer, FINISH, from, to);
        if (finish < 0) {
            return false;
        }
        int value = finish + FINISH.length;
        while (value < to && (buffer[value] == ':' || buffer[value] == ' ')) {
            value++;
        }
        return value < to
                && buffer[value] == '"'
                && buffer[from] == '{'
                && !contains(buffer, FINGERPRINT, from, to);
    }

    /** Reads an event that says by its type what it is. */
    private void inspectTyped(byte[] buffer, int from, int to) {
        var _ = reader.read(buffer, from, to - from);
        final String type = reader.type();
        if (type.equals("error")) {
            errorStatus = ErrorEvent.status(buffer, from, to - from);
            error = Arrays.copyOfRange(buffer, from, to);
        } else if (LAST_TYPES.contains(type)) {
            done = true;
        } else if (type.equals("content_block_delta") || type.endsWith(".delta")) {
            firstToken = true;
            outputEvents++;
        }
    }

    /** Reads an event that has all of the answer so far, and what was used for it. */
    private void inspectGenerated(byte[] buffer, int from, int to) {
        var _ = reader.read(buffer, from, to - from);
        if (reader.completionTokens() > 0) {
            firstToken = true;
            outputEvents++;
        }
    }

    /** What a stream ends with, in words. */
    public String lastEvent() {
        return switch (form) {
            case RESPONSES -> "response.completed";
            case MESSAGES -> "message_stop";
            case COMPLETION, GENERATE, TOKENS, OTHER -> "[DONE]";
        };
    }

    private static boolean startsWith(byte[] buffer, byte[] prefix, int from, int to) {
        return to - from >= prefix.length
                && Arrays.equals(buffer, from, from + prefix.length, prefix, 0, prefix.length);
    }

    private static boolean contains(byte[] buffer, byte[] part, int from, int to) {
        return indexOf(buffer, part, from, to) >= 0;
    }

    private static int indexOf(byte[] buffer, byte[] part, int from, int to) {
        for (int i = from; i <= to - part.length; i++) {
            if (buffer[i] == part[0] && startsWith(buffer, part, i, to)) {
                return i;
            }
        }
        return -1;
    }

    /** No event follows the last one, which needs to wait no longer. */
    public void ended() {
        events.letGo();
    }

    /** An output token has passed. */
    public boolean sawFirstToken() {
        return firstToken;
    }

    /** The end mark has passed. */
    public boolean sawDone() {
        return done;
    }

    /** The engine sent an error event. */
    public boolean sawError() {
        return errorStatus != 0;
    }

    /** The HTTP status that its error event stands for, 500 where that says none; else 0. */
    public int errorStatus() {
        return errorStatus;
    }

    /** The object of its error event; null without one. */
    public byte[] error() {
        return error;
    }

    /** Output tokens so far: exact once the usage has passed, before that one for each event. */
    public int outputTokens() {
        return reader.completionTokens() >= 0 ? reader.completionTokens() : outputEvents;
    }

    /** Events with output tokens so far. */
    public int outputEvents() {
        return outputEvents;
    }

    /** The usage that has passed. */
    public UsageReader usage() {
        return reader;
    }
}
