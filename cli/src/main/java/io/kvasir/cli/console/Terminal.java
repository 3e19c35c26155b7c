package io.kvasir.cli.console;

import java.io.Console;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** What standard output is, and how others' text is made fit for it. */
public final class Terminal {
    private static final String CLEAR = "\u001b[H\u001b[2J";
    private static final String CUT = "…";

    /** Marks that combine take no cell; with more of them a text is cut earlier. */
    private static final int MOST_CHARS_OF_A_CELL = 8;

    private static final char STYLE = '\ufe0f';
    private static final Pattern STEERING =
            Pattern.compile("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}&&[^\t]]");

    private Terminal() {}

    /**
     * True when a person looks at the output, by a terminal that knows escape sequences ({@code
     * TERM=dumb} does not); the JDK can tell for input and standard output.
     */
    @SuppressWarnings("SystemConsoleNull") // 22..24 never gave null, 25 does again
    public static boolean isWatched() {
        final Console console = System.console();
        return isWatched(console != null && console.isTerminal(), System.getenv("TERM"));
    }

    static boolean isWatched(boolean terminal, String kindOrNull) {
        return terminal && !"dumb".equals(kindOrNull);
    }

    /** Whether output is coloured: on a terminal, unless {@code NO_COLOR} is set. */
    public static boolean hasColour() {
        return hasColour(isWatched(), System.getenv("NO_COLOR"));
    }

    static boolean hasColour(boolean watched, String noColourOrNull) {
        return watched && (noColourOrNull == null || noColourOrNull.isEmpty());
    }

    /** A writer to standard output, whose {@code checkError} knows of writes that failed there. */
    public static PrintWriter writer(PrintStream standardOutput) {
        return new PrintWriter(standardOutput, true, standardOutput.charset());
    }

    /**
     * Writes what waits in a writer.
     *
     * @throws CommandFailure if some of what was written to it could not be
     */
    public static void checkTaken(PrintWriter out) {
        if (out.checkError()) {
            throw new CommandFailure(
                    "standard output takes no more: its reader has ended, or its disk is full");
        }
    }

    /** Begins a screen at its top where a person looks; elsewhere it follows the one before. */
    public static void clear(PrintWriter out) {
        if (isWatched()) {
            out.print(CLEAR);
        }
    }

    /**
     * Text of others, such as names of workers, in which nothing steers the terminal. A joiner that
     * makes one picture of two is part of them.
     */
    public static String printable(String text) {
        return STEERING.matcher(text)
                .replaceAll(found -> isInPicture(text, found) ? found.group() : "?");
    }

    /** Between a picture, styled or toned ones as well, and another. */
    private static boolean isInPicture(String text, MatchResult found) {
        if (found.group().charAt(0) != Cells.JOINER
                || found.start() == 0
                || found.end() == text.length()) {
            return false;
        }
        final int before = text.codePointBefore(found.start());
        return (before == STYLE
                        || Character.isEmojiModifier(before)
                        || Character.isExtendedPictographic(before))
                && Character.isExtendedPictographic(text.codePointAt(found.end()));
    }

    /**
     * The same, cut at its end.
     *
     * @param most cells of the terminal that are left of it
     */
    public static String printable(String text, int most) {
        final int enough = MOST_CHARS_OF_A_CELL * most;
        final String all = printable(text.length() > enough ? text.substring(0, enough) : text);
        return Cells.of(all) <= most && text.length() <= enough
                ? all
                : Cells.head(all, most - 1) + CUT;
    }

    /**
     * A name of others, cut in its middle: names differ at their ends, where ranks are as well.
     *
     * @param most cells of the terminal that are left of it
     */
    static String name(String name, int most) {
        final String all = printable(name);
        final int head = (most - 1) / 2;
        return Cells.of(all) <= most
                ? all
                : Cells.head(all, head) + CUT + Cells.tail(all, most - 1 - head);
    }
}
