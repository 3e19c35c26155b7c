package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** README.md shows only code that the build compiles and runs, and files that exist. */
class ReadmeTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    @Test
    void theEmbeddingExampleIsTheOneThatTheBuildRuns() throws IOException {
        final String compiled =
                Files.readString(
                        ROOT.resolve(
                                "router/src/test/java/io/kvasir/router/EmbeddingExampleTest.java"));
        final String example =
                compiled.substring(
                        compiled.indexOf("// example\n") + "// example\n".length(),
                        compiled.indexOf("        // example ends"));
        final String readme = Files.readString(ROOT.resolve("README.md"));
        final int start = readme.indexOf("```java\n") + "```java\n".length();
        assertEquals(
                example.stripTrailing().stripIndent() + "\n",
                readme.substring(start, readme.indexOf("```", start)));
    }

    @Test
    void everyFileThatTheReadmeNamesExists() throws IOException {
        final String readme = Files.readString(ROOT.resolve("README.md"));
        for (String word : readme.split("`", -1)) {
            if (word.matches("(docs|bench)/[A-Za-z0-9_./-]*|CHANGELOG.md|LICENSE")) {
                assertTrue(Files.exists(ROOT.resolve(word)), "README.md names " + word);
            }
        }
    }
}
