package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

class UndecodedTest {
    private static final Map<String, String> NOTHING = Map.of();

    @Test
    void anArgumentThatTheCharsetCouldNotReadIsNamedByItsNumber() {
        assertEquals(
                Optional.of(
                        "argument 3 has characters that the charset US-ASCII of this"
                                + " locale does not have; set LC_ALL=C.UTF-8"),
                Undecoded.problem(
                        List.of("hash", "--lora", "m\ufffd\ufffdd"),
                        NOTHING,
                        StandardCharsets.US_ASCII));
    }

    @Test
    void aVariableOfOursIsNamedWithoutItsValue() {
        assertEquals(
                Optional.of(
                        "the variable KVASIR_MODEL has characters that the charset ISO-8859-1 of"
                                + " this locale does not have; set LC_ALL=C.UTF-8"),
                Undecoded.problem(
                        List.of("serve"),
                        Map.of("KVASIR_MODEL", "\ufffd", "OTHER", "\ufffd"),
                        StandardCharsets.ISO_8859_1));
    }

    @Test
    void whatCouldBeReadIsNoProblem() {
        for (var charset : List.of(StandardCharsets.US_ASCII, StandardCharsets.UTF_8)) {
            assertEquals(
                    Optional.empty(),
                    Undecoded.problem(List.of("hash", "--lora", "?"), NOTHING, charset));
        }
        // in UTF-8 it is a character as any other
        assertEquals(
                Optional.empty(),
                Undecoded.problem(
                        List.of("hash", "--text", "\ufffd"), NOTHING, StandardCharsets.UTF_8));
    }

    @Test
    void anAdapterThatCannotBeReadHasNoHash() throws Exception {
        final ProcessBuilder builder =
                new ProcessBuilder(
                        "sh",
                        "-c",
                        "exec \"$0\" \"$@\" --lora \"$(printf '\\303\\274')\"",
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "io.kvasir.cli.Kvasir",
                        "hash",
                        "--block-size=4",
                        "--tokens=1,2,3,4");
        builder.environment().put("LC_ALL", "POSIX");
        final Process process = builder.redirectErrorStream(true).start();
        final String written =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        assertEquals(ExitCode.USAGE, process.waitFor(), written);
        assertTrue(written.startsWith("kvasir: argument 5 has"), written);
    }
}
