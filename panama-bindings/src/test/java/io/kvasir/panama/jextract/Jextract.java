package io.kvasir.panama.jextract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.Gcc;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** An installed jextract, which the Maven profile {@code jextract} asks for. */
public final class Jextract {
    private static final String WANTED_PROPERTY = "kvasir.jextract";
    private static final String HOME_PROPERTY = "jextract.home";

    private final Path program;

    private Jextract(Path program) {
        this.program = program;
    }

    /**
     * Finds jextract; ends the test as skipped without the profile and as failed where the profile
     * is on and there is none.
     *
     * @return the program
     */
    public static Jextract wanted() {
        assumeTrue(
                System.getProperty(WANTED_PROPERTY) != null,
                "skipped: needs an installed jextract, see the Maven profile jextract");
        return find(System.getProperty(HOME_PROPERTY), System.getenv("PATH"));
    }

    /**
     * Finds jextract in a given folder, else on a given path.
     *
     * @param home its folder; null or empty to look at {@code path}
     * @param path folders as in the variable PATH
     * @return the program
     * @throws AssertionError if it is in none of them, with how to get it
     */
    public static Jextract find(String home, String path) {
        final List<Path> candidates = new ArrayList<>();
        if (home != null && !home.isBlank()) {
            candidates.add(Path.of(home, "bin", "jextract"));
        } else {
            for (String folder : path.split(File.pathSeparator, -1)) {
                candidates.add(Path.of(folder, "jextract"));
            }
        }
        for (Path candidate : candidates) {
            if (Files.isExecutable(candidate)) {
                return new Jextract(candidate);
            }
        }
        return fail(
                "no jextract in "
                        + candidates
                        + ": unpack jextract 25, an early-access build of OpenJDK"
                        + " (https://jdk.java.net/jextract), and set -D"
                        + HOME_PROPERTY
                        + " to its folder");
    }

    /**
     * Runs jextract on a header, compiles and loads what it generates.
     *
     * @param folder receives {@code src} and {@code classes}, in place of those of an earlier run
     * @param header a C header
     * @param headerClass full name of the class to generate for it
     * @param library what has its functions: the generated code looks a function up where it
     *     describes it
     * @return what was generated
     * @throws AssertionError if jextract or the compiler fails
     */
    public GeneratedBindings generate(Path folder, Path header, String headerClass, Path library)
            throws IOException {
        final Path sources = emptied(folder.resolve("src"));
        final Path classes = emptied(folder.resolve("classes"));
        final int dot = headerClass.lastIndexOf('.');
        run(
                folder,
                List.of(
                        program.toString(),
                        "--output",
                        sources.toString(),
                        "--target-package",
                        headerClass.substring(0, dot),
                        "--header-class-name",
                        headerClass.substring(dot + 1),
                        "--library",
                        ":" + library,
                        header.toString()));
        final List<String> compile = new ArrayList<>();
        compile.add(Path.of(System.getProperty("java.home"), "bin", "javac").toString());
        compile.addAll(List.of("-nowarn", "-d", classes.toString()));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(compile::add);
        }
        run(folder, compile);
        final URLClassLoader loader = new URLClassLoader(new URL[] {classes.toUri().toURL()});
        try {
            return new GeneratedBindings(Class.forName(headerClass, true, loader));
        } catch (ClassNotFoundException e) {
            throw new AssertionError(program + " generated no " + headerClass, e);
        }
    }

    /** Makes a folder without what an earlier run left in it. */
    private static Path emptied(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
        return Files.createDirectories(folder);
    }

    private static void run(Path folder, List<String> command) {
        final Gcc.Result result = Gcc.run(folder, command);
        assertEquals(0, result.exit(), () -> command + "\n" + result.out());
    }
}
