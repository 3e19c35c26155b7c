package io.kvasir.prompt.tokenizer;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** Files of a model: regular ones, behind links too, as reading others may never end. Stateless. */
public final class ModelFile {
    private ModelFile() {}

    /**
     * Reads all of a file.
     *
     * @throws NoSuchFileException if it is not there
     * @throws IOException if it is a folder, a pipe, a device or a socket, or cannot be read
     */
    public static byte[] read(Path file) throws IOException {
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            throw new FileSystemException(
                    file.toString(), null, "it is a folder, pipe, device or socket, not a file");
        }
        return Files.readAllBytes(file);
    }

    /**
     * Reads all of a file of text.
     *
     * @throws CharacterCodingException if it is not UTF-8
     * @throws IOException as {@link #read} does
     */
    public static String text(Path file) throws IOException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(read(file))).toString();
    }
}
