package io.kvasir.cli.console;

import io.kvasir.registry.FailureText;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Files that a command line names: what fails with one of them says by which option it came, its
 * name and the reason in words.
 */
public final class NamedFile {
    private NamedFile() {}

    /**
     * What is done with a file.
     *
     * @param <T> what comes of it
     */
    @FunctionalInterface
    public interface Work<T> {
        /**
         * Does it.
         *
         * @throws IOException if the file is why it fails
         * @throws CommandFailure if its content is
         */
        T result() throws IOException;
    }

    /**
     * Reads a file.
     *
     * @param option name of the option, or label of the parameter, that has the file
     * @throws CommandFailure if that fails
     */
    public static <T> T read(String option, Path file, Work<T> work) {
        try {
            return work.result();
        } catch (CommandFailure e) {
            throw failure(option, file, e.getMessage(), e);
        } catch (UncheckedIOException e) {
            throw failure(option, file, reason(file, e.getCause()), e);
        } catch (IOException e) {
            throw failure(option, file, reason(file, e), e);
        }
    }

    /**
     * Makes a file, or overwrites it.
     *
     * @param option name of the option that has the file
     * @throws CommandFailure if that fails
     */
    public static <T> T write(String option, Path file, Work<T> work) {
        return read(
                option,
                file,
                () -> {
                    try {
                        return work.result();
                    } catch (NoSuchFileException e) {
                        final Path folder = file.toAbsolutePath().getParent();
                        throw new IOException("there is no folder " + folder, e);
                    } catch (AccessDeniedException e) {
                        throw new IOException("there is no permission to write it", e);
                    }
                });
    }

    /** A text, or a line of one, without the mark of the byte order that some editors put there. */
    public static String withoutMark(String text) {
        return text.startsWith("\ufeff") ? text.substring(1) : text;
    }

    /** Whether two names are of one file; false where one of them is of none, or cannot be read. */
    public static boolean isSame(Path one, Path other) {
        try {
            return Files.isSameFile(one, other);
        } catch (IOException _) {
            return false;
        }
    }

    /** Some that read a file name it themselves, and more of it: a line, an offset. */
    private static CommandFailure failure(String option, Path file, String reason, Exception e) {
        return new CommandFailure(
                reason.startsWith(file.toString()) ? reason : option + " " + file + ": " + reason,
                e);
    }

    /** That of a file in a folder that is named has the file. */
    private static String reason(Path file, IOException e) {
        if (e instanceof FileSystemException of
                && of.getFile() != null
                && !of.getFile().equals(file.toString())) {
            return FailureText.of(e) + ": " + of.getFile();
        }
        return Files.isDirectory(file) ? "it is a folder" : FailureText.of(e);
    }
}
