package io.kvasir.cli;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Turns trace requests into request bodies. Token {@code j} of the 512 that a hash id stands for is
 * a fixed function of (hash id, j): equal ids give equal tokens, different ids different ones.
 * Bodies are written straight as bytes. One thread.
 */
final class TracePrompts {
    private static final int TOKENS_PER_DRAW = 4;
    private static final int BITS_PER_TOKEN = 16;
    private static final int MAX_DIGITS = 5;

    private final byte[] head;
    private final int vocabulary;
    private byte[] body = new byte[1 << 16];
    private int length;

    /**
     * A maker of bodies.
     *
     * @param model model name to ask for
     * @param vocabulary token ids lie in [0, vocabulary); 1..65536
     */
    TracePrompts(String model, int vocabulary) {
        if (vocabulary < 2 || vocabulary > 1 << BITS_PER_TOKEN) {
            throw new CommandFailure("--vocabulary " + vocabulary + " is outside 2..65536");
        }
        this.vocabulary = vocabulary;
        this.head =
                ("{\"model\":" + Json.MAPPER.getNodeFactory().textNode(model) + ",\"prompt\":[")
                        .getBytes(StandardCharsets.UTF_8);
    }

    /** Token ids of a request's prompt; [inputLength]. */
    int[] tokens(MooncakeTrace.Request request) {
        final int[] tokens = new int[request.inputLength()];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = token(request, i);
        }
        return tokens;
    }

    /** The streaming completion request for a trace request; a fresh array. */
    byte[] body(MooncakeTrace.Request request, int maxTokens) {
        length = 0;
        append(head);
        for (int i = 0; i < request.inputLength(); i++) {
            appendToken(token(request, i));
        }
        length--; // the comma behind the last id
        append(
                ("],\"max_tokens\":"
                                + maxTokens
                                + ",\"temperature\":0,\"ignore_eos\":true,\"stream\":true,"
                                + "\"stream_options\":{\"include_usage\":true}}")
                        .getBytes(StandardCharsets.US_ASCII));
        return Arrays.copyOf(body, length);
    }

    private int token(MooncakeTrace.Request request, int position) {
        final long hashId = request.hashIds()[position / MooncakeTrace.TOKENS_PER_HASH_ID];
        final int inside = position % MooncakeTrace.TOKENS_PER_HASH_ID;
        final long draw = mix(hashId * MooncakeTrace.TOKENS_PER_HASH_ID + inside / TOKENS_PER_DRAW);
        final long bits =
                (draw >>> (inside % TOKENS_PER_DRAW * BITS_PER_TOKEN))
                        & ((1L << BITS_PER_TOKEN) - 1);
        return (int) ((bits * vocabulary) >>> BITS_PER_TOKEN);
    }

    /** The finaliser of SplitMix64: every input bit changes every output bit with even odds. */
    private static long mix(long x) {
        long z = x + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    private void append(byte[] bytes) {
        reserve(bytes.length);
        System.arraycopy(bytes, 0, body, length, bytes.length);
        length += bytes.length;
    }

    private void appendToken(int token) {
        reserve(MAX_DIGITS + 1);
        int digits = 1;
        for (int rest = token; rest >= 10; rest /= 10) {
            digits++;
        }
        int rest = token;
        for (int at = length + digits - 1; at >= length; at--) {
            body[at] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        length += digits;
        body[length++] = ',';
    }

    private void reserve(int bytes) {
        if (body.length - length < bytes) {
            body = Arrays.copyOf(body, Math.max(2 * body.length, length + bytes));
        }
    }
}
