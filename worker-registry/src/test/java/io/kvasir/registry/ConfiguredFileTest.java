package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // else a failure hangs
class ConfiguredFileTest {
    @TempDir private Path dir;

    private static String refusal(Path file) {
        return assertThrows(IOException.class, () -> ConfiguredFile.read(file)).getMessage();
    }

    @Test
    void aNamedPipeIsRefusedBehindALinkToo() throws Exception {
        final Path pipe = dir.resolve("pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        final Path link = Files.createSymbolicLink(dir.resolve("link"), pipe);
        assertEquals("it is a named pipe, not a regular file", refusal(pipe));
        assertEquals("it is a named pipe, not a regular file", refusal(link));
    }

    @ParameterizedTest
    @CsvSource({"/dev/zero, a device", "/dev/null, a device"})
    void aDeviceIsRefused(Path device, String kind) {
        assertEquals("it is " + kind + ", not a regular file", refusal(device));
    }

    @Test
    void aFolderAndAMissingFileAreNamedAsSuch() {
        assertEquals("it is a folder", refusal(dir));
        assertEquals("there is no such file", refusal(dir.resolve("none")));
    }

    @Test
    void aFileThatIsTooLongIsRefusedWithItsSizeAndTheLimit() throws Exception {
        final Path file = Files.write(dir.resolve("long"), new byte[(1 << 20) + 7]);
        assertEquals("it has 1048583 bytes or more; at most 1048576 are read", refusal(file));
        assertEquals(
                (1 << 20) + 7,
                ConfiguredFile.read(file, ConfiguredFile.MAX_CONFIGURATION_BYTES).length);
    }

    @Test
    void aPipeOfAProcessIsReadOnce() throws Exception {
        final Process pipe = new ProcessBuilder("sleep", "600").start();
        try (OutputStream out = pipe.getOutputStream()) {
            out.write("token".getBytes(StandardCharsets.UTF_8));
        }
        try {
            final Path in = Path.of("/proc/" + pipe.pid() + "/fd/0");
            assertEquals("token", new String(ConfiguredFile.read(in), StandardCharsets.UTF_8));
            assertEquals("it is a pipe, which can be read once", refusal(in));
        } finally {
            pipe.destroyForcibly();
        }
    }
}
