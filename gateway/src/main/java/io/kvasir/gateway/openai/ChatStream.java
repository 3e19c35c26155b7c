package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.protocol.sse.SseEvents;

import java.io.ByteArrayOutputStream;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.BitSet;

/**
 * Turns the event stream of a completion into that of a chat, each event as soon as it is whole. A
 * choice is opened by an event of its own that says the role. Errors, the end mark and comments
 * pass. One thread at a time.
 *
 * <p>Keeps no more than the open event, which has at most {@link SseEvents#MAX_EVENT_BYTES}. The
 * first event that cannot be turned ends it.
 */
public final class ChatStream {
    private static final byte[] DONE = "[DONE]".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] DATA = "data: ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = "\n\n".getBytes(StandardCharsets.US_ASCII);

    private final ChatAnswer answer;
    private final SseEvents events = new SseEvents(this::take);
    private final ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
    private final BitSet opened = new BitSet();
    private ProtocolException fault;

    /** Turns the events of one answer. */
    public ChatStream(ChatAnswer answer) {
        this.answer = answer;
    }

    /**
     * Takes the next bytes of the stream.
     *
     * @param chunk consumed
     * @return the events that have become whole; what came before a {@link #fault} included
     */
    public ByteBuffer convert(ByteBuffer chunk) {
        out.reset();
        events.accept(chunk);
        final byte[] unseen = new byte[events.readyBytes()]; // neither data nor dropped
        events.takeReady().get(unseen);
        if (unseen.length > 0 && fault == null) {
            if (isComment(unseen)) {
                out.writeBytes(unseen);
            } else {
                fault = new ProtocolException("an event that is no completion's, or too long");
            }
        }
        return ByteBuffer.wrap(out.toByteArray());
    }

    /** Why the stream cannot go on; null while it can. */
    public ProtocolException fault() {
        return fault;
    }

    /** A part of an event that is too long is longer than comments are let be. */
    private static boolean isComment(byte[] unseen) {
        return unseen.length <= SseEvents.MAX_EVENT_BYTES
                && (unseen[0] == ':' || unseen[0] == '\n' || unseen[0] == '\r');
    }

    /** Never has the event kept: what it becomes is written apart. */
    private boolean take(byte[] bytes, int from, int to) {
        if (fault != null) {
            return false;
        }
        try {
            if (Arrays.equals(bytes, from, to, DONE, 0, DONE.length)) {
                write(DONE);
            } else {
                turn(ChatAnswer.object(bytes, from, to), Arrays.copyOfRange(bytes, from, to));
            }
        } catch (ProtocolException e) {
            fault = e;
        }
        return false;
    }

    private void turn(ObjectNode event, byte[] asItCame) throws ProtocolException {
        if (!event.path("choices").isArray()) {
            write(asItCame); // an error
            return;
        }
        for (JsonNode each : event.get("choices")) {
            final int index = ChatAnswer.index(answer.choice(each));
            if (!opened.get(index)) {
                opened.set(index);
                write(answer.opening(event, index));
            }
        }
        write(answer.chunk(event));
    }

    private void write(byte[] data) {
        out.writeBytes(DATA);
        out.writeBytes(data);
        out.writeBytes(END);
    }
}
