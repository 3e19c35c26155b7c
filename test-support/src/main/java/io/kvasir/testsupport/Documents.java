package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Documents, and parts of them, that are made of the code. A test compares them with it; with
 * {@code -Dkvasir.documents=write} it writes them anew.
 */
public final class Documents {
    private Documents() {}

    /**
     * Finds a file of the source tree.
     *
     * @param path from its root
     * @return absolute
     */
    public static Path file(String path) {
        return Path.of(System.getProperty("kvasir.root")).resolve(path);
    }

    /**
     * Compares a file, or writes it.
     *
     * @param file need not exist
     * @param expected what is in it
     * @throws AssertionError if there is something else in it
     * @throws IOException if it cannot be read or written
     */
    public static void check(Path file, String expected) throws IOException {
        if ("write".equals(System.getProperty("kvasir.documents"))) {
            Files.writeString(file, expected);
            return;
        }
        final String found = Files.exists(file) ? Files.readString(file) : "";
        if (!found.equals(expected)) {
            throw new AssertionError(
                    file
                            + " is not what the code says, from \""
                            + expected.substring(common(found, expected))
                                    .lines()
                                    .findFirst()
                                    .orElse("")
                            + "\" on; -Dkvasir.documents=write writes it anew");
        }
    }

    private static int common(String found, String expected) {
        int i = 0;
        while (i < Math.min(found.length(), expected.length())
                && found.charAt(i) == expected.charAt(i)) {
            i++;
        }
        return expected.lastIndexOf('\n', i - 1) + 1;
    }

    /**
     * Compares the part of a file between the lines {@code <!-- mark -->} and {@code <!-- mark end
     * -->}, or writes it.
     *
     * @param file has both lines
     * @param mark names the part
     * @param expected whole lines
     * @throws AssertionError if there is something else between them, or they are not there
     * @throws IOException if it cannot be read or written
     */
    public static void checkPart(Path file, String mark, String expected) throws IOException {
        final String page = Files.readString(file);
        final String begin = "<!-- " + mark + " -->\n";
        final int from = page.indexOf(begin) + begin.length();
        final int to = page.indexOf("<!-- " + mark + " end -->\n");
        if (from < begin.length() || to < from) {
            throw new AssertionError(file + " has no marks " + mark);
        }
        check(file, page.substring(0, from) + expected + page.substring(to));
    }
}
