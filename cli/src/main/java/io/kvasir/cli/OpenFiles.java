package io.kvasir.cli;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds out whether the process may open as many files as its class path has jars: classes of the
 * others would be missing, each at its first use.
 */
final class OpenFiles {
    /** Limits of the process, where the system has such a file. */
    static final Path LIMITS = Path.of("/proc/self/limits");

    /** For the JVM's own files, and those that a command opens at its start. */
    private static final int OTHERS = 128;

    private static final Pattern LIMIT = Pattern.compile("Max open files +([0-9]+) .*");

    private OpenFiles() {}

    /**
     * What is wrong with the limit of open files.
     *
     * @param classPath files and folders, as the JVM was given them; of a single jar those that it
     *     names count as well
     * @param limits a file in the form of {@link #LIMITS}
     * @return one line; empty where nothing is, and where the limit is not known
     */
    static Optional<String> problem(String classPath, Path limits) {
        final String[] files = classPath.split(File.pathSeparator, -1);
        int wanted = OTHERS + (files.length == 1 ? namedBy(files[0]) : 0);
        for (String file : files) {
            wanted += file.endsWith(".jar") ? 1 : 0;
        }
        final long limit = limit(limits);
        return limit < wanted
                ? Optional.of(
                        "the limit of open files (ulimit -n) is "
                                + limit
                                + ", too few for the jars of the program; raise it to "
                                + wanted
                                + " or more")
                : Optional.empty();
    }

    /** How many jars a program's jar names as its class path, where {@code java -jar} runs it. */
    private static int namedBy(String file) {
        try (JarFile jar = new JarFile(file)) {
            final Manifest manifest = jar.getManifest();
            final String named =
                    manifest == null
                            ? null
                            : manifest.getMainAttributes().getValue(Attributes.Name.CLASS_PATH);
            return named == null ? 0 : named.strip().split(" +", -1).length;
        } catch (IOException _) { // a folder, or no jar
            return 0;
        }
    }

    private static long limit(Path limits) {
        try {
            for (String line : Files.readAllLines(limits)) {
                final Matcher matcher = LIMIT.matcher(line);
                if (matcher.matches()) {
                    return Long.parseLong(matcher.group(1));
                }
            }
        } catch (IOException _) { // not on this system
        }
        return Long.MAX_VALUE;
    }
}
