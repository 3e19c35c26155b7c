package io.kvasir.registry;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Files that an operator has named: regular ones, behind links too, of a limited size. A pipe that
 * the process was started with, such as {@code /dev/fd/63} of a shell's {@code <(...)}, is read
 * once; whatever else is no regular file is refused, as opening or reading it may never end.
 * Thread-safe.
 */
public final class ConfiguredFile {
    /** Of a configuration. */
    public static final int MAX_CONFIGURATION_BYTES = 16 << 20;

    /** Of secrets, keys and certificates. */
    public static final int MAX_SECRET_BYTES = 1 << 20;

    private static final int FILE_TYPE = 0170000;
    private static final int FOLDER = 0040000;
    private static final int REGULAR = 0100000;
    private static final int PIPE = 0010000;
    private static final int SOCKET = 0140000;

    /** Keys of pipes that were read: they are empty now, and reading again may never end. */
    private static final Set<Object> READ_PIPES = ConcurrentHashMap.newKeySet();

    private ConfiguredFile() {}

    /**
     * Reads all of a file of secrets, keys or certificates.
     *
     * @return one byte at least
     * @throws IOException if it cannot be read, is empty or longer than {@link #MAX_SECRET_BYTES};
     *     its message says why in words, to be put after the option and the file
     */
    public static byte[] read(Path file) throws IOException {
        final byte[] bytes = read(file, MAX_SECRET_BYTES);
        if (bytes.length == 0) {
            throw new IOException("it is empty");
        }
        return bytes;
    }

    /**
     * Reads all of a file.
     *
     * @param maxBytes that it may have
     * @return nothing of an empty file
     * @throws IOException if it cannot be read or is longer; its message says why in words, to be
     *     put after the option and the file
     */
    public static byte[] read(Path file, int maxBytes) throws IOException {
        try {
            checkKind(file);
            try (InputStream in = Files.newInputStream(file)) {
                final byte[] bytes = in.readNBytes(maxBytes + 1);
                if (bytes.length > maxBytes) {
                    throw new IOException(
                            "it has "
                                    + Math.max(Files.size(file), bytes.length)
                                    + " bytes or more; at most "
                                    + maxBytes
                                    + " are read");
                }
                return bytes;
            }
        } catch (NoSuchFileException | AccessDeniedException e) {
            throw new IOException(FailureText.of(e), e);
        }
    }

    private static void checkKind(Path file) throws IOException {
        final int kind = (int) Files.getAttribute(file, "unix:mode") & FILE_TYPE;
        switch (kind) {
            case REGULAR -> {}
            case FOLDER -> throw new IOException("it is a folder");
            case PIPE -> checkPipe(file);
            case SOCKET -> throw refused("a socket");
            default -> throw refused("a device");
        }
    }

    private static void checkPipe(Path file) throws IOException {
        if (!file.startsWith("/dev") && !file.startsWith("/proc")) {
            throw refused("a named pipe");
        }
        if (!READ_PIPES.add(Files.getAttribute(file, "unix:fileKey"))) {
            throw new IOException("it is a pipe, which can be read once");
        }
    }

    private static IOException refused(String kind) {
        return new IOException("it is " + kind + ", not a regular file");
    }
}
