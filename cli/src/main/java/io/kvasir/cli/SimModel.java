package io.kvasir.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The simulated engines' model: its name, and its tokenizer files as a folder. */
final class SimModel {
    /** Model name that simulated engines serve by default. */
    static final String NAME = "kvasir-sim";

    /** Word for {@code --tokenizer} that means the files inside the program. */
    static final String KEYWORD = "sim";

    private static final String RESOURCES = "/io/kvasir/gateway/sim-model/";
    private static final List<String> FILES = List.of("tokenizer.json", "tokenizer_config.json");

    private SimModel() {}

    /** A fresh temporary folder with the files, removed when the JVM ends. */
    static Path files() {
        try {
            final Path folder = Files.createTempDirectory("kvasir-sim-model");
            folder.toFile().deleteOnExit();
            for (String name : FILES) {
                final Path file = folder.resolve(name);
                try (InputStream in = SimModel.class.getResourceAsStream(RESOURCES + name)) {
                    if (in == null) {
                        throw new IllegalStateException("not in the build: " + RESOURCES + name);
                    }
                    Files.copy(in, file);
                }
                file.toFile().deleteOnExit();
            }
            return folder;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot unpack the simulated model's tokenizer", e);
        }
    }
}
