package io.kvasir.cli.console;

import java.nio.charset.Charset;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Finds text of the command line that the JVM could not read. In a locale such as POSIX, whose
 * charset is ASCII, each byte of another character becomes U+FFFD: different names would be one.
 */
public final class Undecoded {
    private static final char REPLACEMENT = '\ufffd';
    private static final String OURS = "KVASIR_";

    private Undecoded() {}

    /** The charset by which the JVM has read arguments and environment. */
    public static Charset charset() {
        return Charset.forName(System.getProperty("sun.jnu.encoding"), Charset.defaultCharset());
    }

    /**
     * The first argument or variable of Kvasir that could not be read.
     *
     * @param args words of the command line
     * @param environment variables by name; those of others are left alone
     * @param charset by which the JVM has read both
     * @return what is wrong and what to do, in one line; empty if nothing is, and where the charset
     *     has U+FFFD itself, so that it may be meant
     */
    public static Optional<String> problem(
            List<String> args, Map<String, String> environment, Charset charset) {
        if (!charset.canEncode() || charset.newEncoder().canEncode(REPLACEMENT)) {
            return Optional.empty();
        }
        for (int i = 0; i < args.size(); i++) {
            if (isUndecoded(args.get(i))) {
                return Optional.of("argument " + (i + 1) + missing(charset));
            }
        }
        return new TreeMap<>(environment)
                .entrySet().stream()
                        .filter(variable -> variable.getKey().startsWith(OURS))
                        .filter(variable -> isUndecoded(variable.getValue()))
                        .findFirst()
                        .map(variable -> "the variable " + variable.getKey() + missing(charset));
    }

    private static boolean isUndecoded(String text) {
        return text.indexOf(REPLACEMENT) >= 0;
    }

    private static String missing(Charset charset) {
        return " has characters that the charset "
                + charset
                + " of this locale does not have; set LC_ALL=C.UTF-8";
    }
}
