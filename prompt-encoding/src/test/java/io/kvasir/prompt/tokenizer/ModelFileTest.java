package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.prompt.chat.ChatModel;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Files of a model that are none: a start is refused, and does not wait for a pipe's writer. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // else a failure hangs
class ModelFileTest {
    private static final String REFUSAL = ": it is a folder, pipe, device or socket, not a file";

    @TempDir private Path folder;

    private Path pipe(String name) throws Exception {
        final Path pipe = folder.resolve(name);
        Files.createDirectories(pipe.getParent());
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        return pipe;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "tokenizer.json",
                "tokenizer_config.json",
                "special_tokens_map.json",
                "chat_template.jinja",
                "additional_chat_templates/tools.jinja"
            })
    void aNamedPipeOfAModelIsRefused(String name) throws Exception {
        Files.writeString(folder.resolve("tokenizer.json"), "{}");
        Files.deleteIfExists(folder.resolve(name));
        final Path pipe = pipe(name);
        assertEquals(
                "cannot read the model's tokenizer files at " + folder + ": " + pipe + REFUSAL,
                assertThrows(TokenizerException.class, () -> ChatModel.load(folder)).getMessage());
    }

    @Test
    void aNamedPipeInPlaceOfATokenizerIsRefusedBehindALinkToo() throws Exception {
        final Path link = Files.createSymbolicLink(folder.resolve("link"), pipe("pipe"));
        assertEquals(
                "cannot read " + link + ": " + link + REFUSAL,
                assertThrows(TokenizerException.class, () -> Tokenizers.load(link)).getMessage());
    }

    @Test
    void aTextThatIsNotUtf8IsRefused() throws Exception {
        final Path file = Files.write(folder.resolve("text"), new byte[] {(byte) 0xC3, '('});
        assertThrows(CharacterCodingException.class, () -> ModelFile.text(file));
    }
}
