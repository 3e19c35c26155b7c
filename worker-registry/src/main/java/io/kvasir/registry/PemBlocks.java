package io.kvasir.registry;

import java.io.IOException;
import java.util.Iterator;

/**
 * Whether a text of PEM is whole: Java's reader ends, without a word, at a block that was cut.
 * Stateless.
 */
final class PemBlocks {
    private static final String BEGIN = "-----BEGIN ";
    private static final String END = "-----END ";
    private static final String CLOSING = "-----";

    private PemBlocks() {}

    /**
     * Checks that each block that begins also ends.
     *
     * @throws IOException if one does not, as in a file that is still being written
     */
    static void check(String text) throws IOException {
        int count = 0;
        boolean isOpen = false;
        final Iterator<String> lines = text.lines().map(String::strip).iterator();
        while (lines.hasNext()) {
            final String line = lines.next();
            if (line.startsWith(BEGIN)) {
                if (isOpen || !isClosed(line, BEGIN)) {
                    throw cut(isOpen ? count : count + 1);
                }
                isOpen = true;
                count++;
            } else if (line.startsWith(END)) {
                if (!isOpen) {
                    throw new IOException("a certificate ends in it without its beginning");
                }
                if (!isClosed(line, END)) {
                    throw cut(count);
                }
                isOpen = false;
            } else if (!isOpen && !lines.hasNext() && isStart(line)) {
                throw cut(count + 1);
            }
        }
        if (isOpen) {
            throw cut(count);
        }
    }

    private static boolean isClosed(String line, String begin) {
        return line.length() > begin.length() + CLOSING.length() && line.endsWith(CLOSING);
    }

    /** Of a last line: whether it may become one that begins a block. */
    private static boolean isStart(String line) {
        return !line.isEmpty() && BEGIN.startsWith(line);
    }

    private static IOException cut(int number) {
        return new IOException("certificate " + number + " has no end: the file was cut");
    }
}
