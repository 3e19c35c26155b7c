package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.NamedFile;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Reads token ids from text: unsigned 32-bit numbers apart by commas, blanks, lines, brackets. */
final class TokenList {
    private static final int EXCERPT_LENGTH = 20;

    private TokenList() {}

    /**
     * Reads a file, or standard input when {@code file} is {@code -}.
     *
     * @throws java.nio.charset.CharacterCodingException if it is no text in UTF-8
     */
    static int[] read(Path file) throws IOException {
        final byte[] bytes =
                file.toString().equals("-") ? System.in.readAllBytes() : Files.readAllBytes(file);
        final CharBuffer text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
        return parse(NamedFile.withoutMark(text.toString()));
    }

    /**
     * Parses token ids.
     *
     * @param text ids in order; an id above 2^31 - 1 keeps its bits and so is negative in the
     *     result
     * @return one int per id; empty for a text without ids
     * @throws CommandFailure for anything that is not an unsigned 32-bit decimal number
     */
    static int[] parse(String text) {
        int[] ids = new int[Math.max(8, text.length() / 2)];
        int count = 0;
        int at = 0;
        while (at < text.length()) {
            if (isSeparator(text.charAt(at))) {
                at++;
                continue;
            }
            int end = at;
            while (end < text.length() && !isSeparator(text.charAt(end))) {
                end++;
            }
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
            }
            ids[count] = id(text, at, end, count);
            count++;
            at = end;
        }
        return Arrays.copyOf(ids, count);
    }

    private static int id(String text, int from, int to, int index) {
        try {
            return Integer.parseUnsignedInt(text, from, to, 10);
        } catch (NumberFormatException e) {
            final String word = text.substring(from, Math.min(to, from + EXCERPT_LENGTH));
            throw new CommandFailure(
                    "token " + index + " is '" + word + "', not a number in 0..4294967295", e);
        }
    }

    private static boolean isSeparator(char c) {
        return c == ',' || c == '[' || c == ']' || Character.isWhitespace(c);
    }
}
