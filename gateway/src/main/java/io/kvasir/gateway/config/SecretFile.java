package io.kvasir.gateway.config;

import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Files of tokens, keys and passwords: UTF-8, one secret a line. Blanks around a line, blank lines
 * and a mark of the byte order do not count. No message has a secret. Stateless.
 */
public final class SecretFile {
    private static final String COMMENT = "#";
    private static final char BYTE_ORDER_MARK = '\ufeff';

    /**
     * A line with a secret.
     *
     * @param secret without blanks around it
     * @param from option, file and number of the line, for messages
     */
    public record Line(Secret secret, String from) {}

    private SecretFile() {}

    /**
     * All tokens of a file; a line that begins with {@code #} is a comment.
     *
     * @param option what names the file, for messages
     * @return at least one
     * @throws GatewayException with option, file and what is wrong, where it cannot be read or has
     *     none
     */
    public static List<Line> tokens(String option, Path file) {
        final List<Line> tokens =
                lines(option, file).stream()
                        .filter(line -> !line.secret().value().startsWith(COMMENT))
                        .toList();
        if (tokens.isEmpty()) {
            throw new GatewayException(
                    option + " " + file + ": it has no token; write one a line", null);
        }
        return tokens;
    }

    /** The first one of {@link #tokens}. */
    public static Line token(String option, Path file) {
        return tokens(option, file).getFirst();
    }

    /**
     * The password on the first line of a file; it may begin with {@code #}.
     *
     * @param option what names the file, for messages
     * @throws GatewayException with option, file and what is wrong, where it cannot be read or has
     *     none
     */
    public static Secret password(String option, Path file) {
        final List<Line> lines = lines(option, file);
        if (lines.isEmpty()) {
            throw new GatewayException(option + " " + file + ": it has no password", null);
        }
        return lines.getFirst().secret();
    }

    private static List<Line> lines(String option, Path file) {
        final String from = option + " " + file;
        final String text;
        try {
            text = text(ConfiguredFile.read(file));
        } catch (IOException e) {
            throw new GatewayException(from + ": " + FailureText.of(e), e);
        }
        final List<Line> lines = new ArrayList<>();
        int number = 0;
        for (String line : text.lines().map(String::strip).toList()) {
            number++;
            if (!line.isEmpty()) {
                lines.add(new Line(new Secret(line), from + ", line " + number));
            }
        }
        return lines;
    }

    private static String text(byte[] bytes) throws IOException {
        final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder(); // refuses what is none
        final ByteBuffer in = ByteBuffer.wrap(bytes);
        final CharBuffer out = CharBuffer.allocate(bytes.length);
        if (utf8.decode(in, out, true).isError()) {
            throw new IOException("line " + lineAt(bytes, in.position()) + " is no UTF-8");
        }
        final String text = out.flip().toString();
        return text.charAt(0) == BYTE_ORDER_MARK ? text.substring(1) : text;
    }

    private static int lineAt(byte[] bytes, int position) {
        int number = 1;
        for (int i = 0; i < position; i++) {
            if (bytes[i] == '\n') {
                number++;
            }
        }
        return number;
    }
}
