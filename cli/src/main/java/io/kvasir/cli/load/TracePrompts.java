package io.kvasir.cli.load;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Turns trace requests into request bodies. Token {@code j} of the 512 that a hash id stands for is
 * a fixed function of (hash id, j): equal ids give equal tokens, different ids different ones.
 * Bodies are written straight as bytes. One thread.
 */
public final class TracePrompts {
    private static final int TOKENS_PER_DRAW = 4;
    private static final int BITS_PER_TOKEN = 16;

    /** Most token ids. */
    public static final int MOST_VOCABULARY = 1 << BITS_PER_TOKEN;

    private static final long TOKEN_MASK = (1L << BITS_PER_TOKEN) - 1;
    private static final int DRAWS_PER_HASH_ID = MooncakeTrace.TOKENS_PER_HASH_ID / TOKENS_PER_DRAW;
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final byte[] head;
    private final int vocabulary;

    /** Digits and comma of each token id as the bytes of a long, and how many they are. */
    private final long[] texts;

    private final byte[] textLengths;

    /**
     * A maker of bodies.
     *
     * @param model model name to ask for
     * @param vocabulary token ids lie in [0, vocabulary); 2..65536
     */
    public TracePrompts(String model, int vocabulary) {
        if (vocabulary < 2 || vocabulary > MOST_VOCABULARY) {
            throw new CommandFailure("--vocabulary " + vocabulary + " is outside 2..65536");
        }
        this.vocabulary = vocabulary;
        this.head =
                ("{\"model\":" + Json.MAPPER.getNodeFactory().textNode(model) + ",\"prompt\":[")
                        .getBytes(StandardCharsets.UTF_8);
        this.texts = new long[vocabulary];
        this.textLengths = new byte[vocabulary];
        for (int id = 0; id < vocabulary; id++) {
            final byte[] text = (id + ",").getBytes(StandardCharsets.US_ASCII);
            textLengths[id] = (byte) text.length;
            texts[id] = (long) LONG.get(Arrays.copyOf(text, Long.BYTES), 0);
        }
    }

    /** Token ids of a request's prompt; [inputLength]. */
    public int[] tokens(MooncakeTrace.Request request) {
        final int[] tokens = new int[request.inputLength()];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = token(draw(request, i / TOKENS_PER_DRAW), i % TOKENS_PER_DRAW);
        }
        return tokens;
    }

    /** The streaming completion request for a trace request; a fresh array. */
    byte[] body(MooncakeTrace.Request request, int maxTokens) {
        final byte[] tail =
                ("],\"max_tokens\":"
                                + maxTokens
                                + ",\"temperature\":0,\"ignore_eos\":true,\"stream\":true,"
                                + "\"stream_options\":{\"include_usage\":true}}")
                        .getBytes(StandardCharsets.US_ASCII);
        // every id is written as 8 bytes and then counted as long as it is: room for the last one
        final int longest = textLengths[vocabulary - 1];
        final byte[] body =
                new byte
                        [head.length
                                + request.inputLength() * longest
                                + Math.max(Long.BYTES, tail.length)];
        System.arraycopy(head, 0, body, 0, head.length);
        final int end = appendTokens(request, body, head.length) - 1; // less the last comma
        System.arraycopy(tail, 0, body, end, tail.length);
        return Arrays.copyOf(body, end + tail.length);
    }

    private int appendTokens(MooncakeTrace.Request request, byte[] body, int from) {
        int at = from;
        int left = request.inputLength();
        for (int draws = 0; left > 0; draws++) {
            final long draw = draw(request, draws);
            final int count = Math.min(left, TOKENS_PER_DRAW);
            for (int i = 0; i < count; i++) {
                final int token = token(draw, i);
                LONG.set(body, at, texts[token]);
                at += textLengths[token];
            }
            left -= count;
        }
        return at;
    }

    /** Random bits of four tokens in a row: the {@code index}-th four of the prompt. */
    private static long draw(MooncakeTrace.Request request, int index) {
        final long hashId = request.hashIds()[index / DRAWS_PER_HASH_ID];
        return mix(hashId * MooncakeTrace.TOKENS_PER_HASH_ID + index % DRAWS_PER_HASH_ID);
    }

    private int token(long draw, int index) {
        final long bits = (draw >>> (index * BITS_PER_TOKEN)) & TOKEN_MASK;
        return (int) ((bits * vocabulary) >>> BITS_PER_TOKEN);
    }

    /** The finaliser of SplitMix64: every input bit changes every output bit with even odds. */
    private static long mix(long x) {
        long z = x + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
