package io.kvasir.panama.jextract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;

class JextractTest {
    @TempDir private Path folder;

    /** Stands where jextract would: notes its arguments and writes one class. */
    private Path standIn(String script) throws IOException {
        final Path program =
                Files.createDirectories(folder.resolve("home/bin")).resolve("jextract");
        Files.writeString(program, "#!/bin/sh\nset -e\n" + script);
        return Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private String home() {
        return folder.resolve("home").toString();
    }

    @Test
    void whereThereIsNoneTheErrorSaysHowToGetIt() {
        final AssertionError e =
                assertThrows(AssertionError.class, () -> Jextract.find(home(), "/usr/bin"));
        assertTrue(e.getMessage().contains(home() + "/bin/jextract"), e.getMessage());
        assertTrue(
                e.getMessage()
                        .contains(
                                "jextract 25, an early-access build of OpenJDK"
                                        + " (https://jdk.java.net/jextract), and set"
                                        + " -Djextract.home"),
                e.getMessage());
    }

    @Test
    @EnabledOnOs(value = OS.LINUX, disabledReason = "skipped: the stand-in is a shell script")
    void whatItGeneratesIsCompiledAndRead() throws IOException {
        standIn(
                """
                echo "$@" > "$2/arguments"
                mkdir -p "$2/a/b"
                cat > "$2/a/b/Api.java" <<END
                package a.b;
                public class Api {
                    public static java.lang.foreign.FunctionDescriptor f\\$descriptor() {
                        return java.lang.foreign.FunctionDescriptor.ofVoid();
                    }
                }
                END
                """);
        final GeneratedBindings generated =
                Jextract.find(null, "/nonexistent:" + home() + "/bin")
                        .generate(folder, Path.of("api.h"), "a.b.Api", Path.of("/lib.so"));
        assertEquals(
                "--output %s/src --target-package a.b --header-class-name Api --library :/lib.so api.h"
                        .formatted(folder),
                Files.readString(folder.resolve("src/arguments")).strip());
        assertEquals(
                List.of(), generated.functionDifferences(Map.of("f", FunctionDescriptor.ofVoid())));
        assertEquals(
                1,
                generated
                        .functionDifferences(
                                Map.of("f", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT)))
                        .size());
    }

    @Test
    @EnabledOnOs(value = OS.LINUX, disabledReason = "skipped: the stand-in is a shell script")
    void itsErrorsAreShown() throws IOException {
        standIn("echo 'api.h:1: error'; exit 1\n");
        final AssertionError e =
                assertThrows(
                        AssertionError.class,
                        () ->
                                Jextract.find(home(), "")
                                        .generate(
                                                folder,
                                                Path.of("api.h"),
                                                "a.b.Api",
                                                Path.of("/lib.so")));
        assertTrue(e.getMessage().contains("api.h:1: error"), e.getMessage());
    }
}
