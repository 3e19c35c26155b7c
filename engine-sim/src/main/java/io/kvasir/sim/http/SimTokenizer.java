package io.kvasir.sim.http;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Tokenizer of the simulated model: one token per UTF-8 byte, four special tokens above them, and a
 * ChatML template. Stateless, any thread.
 */
final class SimTokenizer {
    static final int BEGIN_OF_TEXT = 256;
    static final int END_OF_TEXT = 257;
    static final int IM_END = 259;

    private static final int FIRST_SPECIAL = 256;
    private static final List<String> SPECIALS =
            List.of("<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>");
    private static final List<byte[]> SPECIAL_BYTES =
            SPECIALS.stream().map(s -> s.getBytes(StandardCharsets.UTF_8)).toList();

    private SimTokenizer() {}

    /** Encodes text; the names of special tokens become those tokens wherever they stand. */
    static int[] encode(String text, boolean beginOfText) {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        final int[] tokens = new int[bytes.length + 1];
        int count = 0;
        if (beginOfText) {
            tokens[count++] = BEGIN_OF_TEXT;
        }
        for (int i = 0; i < bytes.length; ) {
            final int special = bytes[i] == '<' ? specialAt(bytes, i) : -1;
            if (special >= 0) {
                tokens[count++] = FIRST_SPECIAL + special;
                i += SPECIAL_BYTES.get(special).length;
            } else {
                tokens[count++] = bytes[i++] & 0xff;
            }
        }
        return Arrays.copyOf(tokens, count);
    }

    /** Decodes tokens; ids that the tokenizer does not have become the replacement character. */
    static String decode(int[] tokens, int from, int to) {
        final ByteBuffer bytes =
                ByteBuffer.allocate(Math.max(1, to - from) * 20).order(ByteOrder.BIG_ENDIAN);
        for (int i = from; i < to; i++) {
            if (tokens[i] >= 0 && tokens[i] < FIRST_SPECIAL) {
                bytes.put((byte) tokens[i]);
            } else {
                bytes.put(name(tokens[i]).getBytes(StandardCharsets.UTF_8));
            }
        }
        return new String(bytes.array(), 0, bytes.position(), StandardCharsets.UTF_8);
    }

    /** Name of one token. */
    static String name(int token) {
        if (token >= 0 && token < 0x80) {
            return String.valueOf((char) token);
        }
        return token >= FIRST_SPECIAL && token < FIRST_SPECIAL + SPECIALS.size()
                ? SPECIALS.get(token - FIRST_SPECIAL)
                : "\ufffd";
    }

    /** Writes a conversation as ChatML. */
    static String chat(List<ApiRequest.Message> messages, boolean addGenerationPrompt) {
        final StringBuilder text = new StringBuilder();
        for (ApiRequest.Message message : messages) {
            text.append("<|im_start|>")
                    .append(message.role())
                    .append('\n')
                    .append(message.content())
                    .append("<|im_end|>\n");
        }
        if (addGenerationPrompt) {
            text.append("<|im_start|>assistant\n");
        }
        return text.toString();
    }

    private static int specialAt(byte[] bytes, int at) {
        for (int s = 0; s < SPECIAL_BYTES.size(); s++) {
            final byte[] special = SPECIAL_BYTES.get(s);
            if (at + special.length <= bytes.length
                    && Arrays.equals(bytes, at, at + special.length, special, 0, special.length)) {
                return s;
            }
        }
        return -1;
    }
}
