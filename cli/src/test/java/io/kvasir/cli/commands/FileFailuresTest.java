package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.ExitCode;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A file that a command cannot use ends it with exit code 3, its option, its name and why. */
class FileFailuresTest {
    @TempDir private Path dir;
    private Path real;
    private Path latin;

    @BeforeEach
    void makeFiles() throws IOException {
        real =
                Files.writeString(
                        dir.resolve("real"), "{\"i\": 0, \"prompt\": [], \"cached_tokens\": 0}");
        latin = dir.resolve("latin");
        Files.write(latin, "1 caf\u00e9\n".getBytes(StandardCharsets.ISO_8859_1));
    }

    private String said(String template, Path file) {
        final String line =
                template.replace("REAL", real.toString())
                        .replace("OTHER", dir.resolve("other").toString())
                        .replace("FILE", file.toString());
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(ExitCode.FAILED, run.exitCode(), run.err());
        final String last = run.err().lines().toList().getLast(); // progress may be before it
        assertFalse(last.contains("Exception"), last);
        return last.replaceFirst("^kvasir [a-z ]+: ", "");
    }

    /** That a command line, after what it calls the file, names the file and the reason. */
    private void assertSaid(String labelAndLine, Path file, String reason) {
        final String[] parts = labelAndLine.split(" \\| ", 2);
        assertEquals(parts[0] + " " + file + ": " + reason, said(parts[1], file));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--tokens-file | hash --block-size 4 --tokens-file FILE",
                "EVENTS | truth FILE REAL --block-size 4",
                "REQUESTS | truth REAL FILE --block-size 4",
                "--trace | replay --trace FILE",
                "--journal | replay --journal FILE",
                "--config | replay --journal REAL --config FILE",
                "--config | serve --model m --check-config --config FILE",
                "--trace | simulate --trace FILE",
                "--trace | bench generate --out OTHER --trace FILE",
                "FILE | bench kvops FILE",
            })
    void oneThatIsMissing(String labelAndLine) {
        assertSaid(labelAndLine, dir.resolve("missing"), "there is no such file");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--tokens-file | hash --block-size 4 --tokens-file FILE",
                "REQUESTS | truth REAL FILE --block-size 4",
                "--trace | replay --trace FILE",
                "--config | replay --journal REAL --config FILE",
                "--config | serve --model m --check-config --config FILE",
                "--trace | simulate --trace FILE",
                "--trace | bench generate --out OTHER --trace FILE",
                "FILE | bench kvops FILE",
                "--out | bench generate --multi-turn --requests 1 --out FILE",
                "--out | bench generate --cliff unknown-flood --scale 0.002 --out FILE",
            })
    void aFolder(String labelAndLine) {
        assertSaid(labelAndLine, dir, "it is a folder");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--tokens-file | hash --block-size 4 --tokens-file FILE",
                "REQUESTS | truth REAL FILE --block-size 4",
                "--trace | replay --trace FILE",
                "--config | replay --journal REAL --config FILE",
                "--config | serve --model m --check-config --config FILE",
                "--trace | simulate --trace FILE",
                "--trace | bench generate --out OTHER --trace FILE",
            })
    void textOfAnotherCharset(String labelAndLine) {
        assertSaid(labelAndLine, latin, "it is no text in UTF-8");
    }

    @Test
    void aJournalThatAFolderDoesNotHave() {
        final Path journal = dir.resolve("decisions.kvj");
        assertEquals(
                "--journal " + dir + ": there is no such file: " + journal,
                said("replay --journal FILE", dir));
    }

    @Test
    void aFolderThatAStreamIsToBeMadeIn() {
        final Path out = dir.resolve("none").resolve("x");
        assertEquals(
                "--out " + out + ": there is no folder " + out.getParent(),
                said("bench generate --multi-turn --requests 1 --out FILE", out));
        assertEquals(
                "--keep " + out + ": there is no such folder",
                said("bench cliffs unknown-flood --scale 0.002 --forks 0 --keep FILE", out));
    }

    @Test
    void aDiskThatIsFull() {
        final Path full = Path.of("/dev/full");
        assumeTrue(Files.isWritable(full), "not of this system");
        assertEquals(
                "--out /dev/full: No space left on device",
                said("bench generate --multi-turn --requests 1 --out FILE", full));
    }

    @Test
    void aTokenThatIsNoneNamesItsFile() throws IOException {
        final Path file = Files.writeString(dir.resolve("tokens"), "1 x");
        assertEquals(
                "--tokens-file " + file + ": token 1 is 'x', not a number in 0..4294967295",
                said("hash --block-size 4 --tokens-file FILE", file));
    }
}
