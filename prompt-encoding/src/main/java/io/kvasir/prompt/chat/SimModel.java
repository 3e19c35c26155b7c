package io.kvasir.prompt.chat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The simulated engines' model: its name, and its tokenizer files as a folder. */
public final class SimModel {
    /** Model name that simulated engines serve by default. */
    public static final String NAME = "kvasir-sim";

    /** Word in place of a tokenizer's path that means the files inside the program. */
    public static final String KEYWORD = "sim";

    private static final String PARENT = "java.io.tmpdir";
    private static final String RESOURCES = "sim-model/";
    private static final List<String> FILES = List.of("tokenizer.json", "tokenizer_config.json");

    private SimModel() {}

    /**
     * Unpacks the files.
     *
     * @return a fresh temporary folder with them, removed when the JVM ends
     * @throws UncheckedIOException if that fails; its cause names the folder and its property
     */
    public static Path files() {
        return files(Path.of(System.getProperty(PARENT)));
    }

    /** The same in a folder in it. */
    static Path files(Path parent) {
        try {
            if (!Files.isDirectory(parent)) {
                throw new IOException("there is no such folder");
            }
            if (!Files.isWritable(parent)) {
                throw new IOException("there is no permission to write it");
            }
            final Path folder = Files.createTempDirectory(parent, "kvasir-sim-model");
            folder.toFile().deleteOnExit();
            for (String name : FILES) {
                final Path file = folder.resolve(name);
                Files.write(file, read(name));
                file.toFile().deleteOnExit();
            }
            return folder;
        } catch (IOException e) {
            final String reason =
                    e instanceof FileSystemException of && of.getReason() != null
                            ? of.getReason()
                            : e.getMessage();
            throw new UncheckedIOException(
                    new IOException(
                            "cannot unpack the simulated model's tokenizer into "
                                    + parent
                                    + " ("
                                    + PARENT
                                    + "): "
                                    + reason,
                            e));
        }
    }

    /** Content of one of the files. */
    static byte[] read(String name) throws IOException {
        try (InputStream in = SimModel.class.getResourceAsStream(RESOURCES + name)) {
            if (in == null) {
                throw new IllegalStateException("not in the build: " + RESOURCES + name);
            }
            return in.readAllBytes();
        }
    }
}
