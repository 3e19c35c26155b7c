package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * README.md and the pages below docs show only Java that the build compiles and runs, and files
 * that exist.
 */
class ReadmeTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));
    private static final Pattern EXAMPLE =
            Pattern.compile("// example[^\n]*(?<!ends)\n(.*?) *// example ends", Pattern.DOTALL);
    private static final Pattern SHOWN = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    @Test
    void theEmbeddingExampleIsTheOneThatTheBuildRuns() throws IOException {
        assertEquals(
                examples("router/src/test/java/io/kvasir/router/EmbeddingExampleTest.java"),
                shown("README.md"));
    }

    @Test
    void theExamplesOfEmbeddingAreThoseThatTheBuildRuns() throws IOException {
        assertEquals(
                examples("router/src/test/java/io/kvasir/router/RoutingExamplesTest.java"),
                shown("docs/embedding.md"));
    }

    @Test
    void theExamplesOfTransfersAreThoseThatTheBuildRuns() throws IOException {
        assertEquals(
                examples("nixl-transfer/src/test/java/io/kvasir/nixl/TransferExampleTest.java"),
                shown("docs/transfers.md"));
    }

    @Test
    void theExampleOfAnEnginesHooksIsTheOneThatTheBuildRuns() throws IOException {
        assertEquals(
                examples(
                        "disruptor-pipeline/src/test/java/io/kvasir/pipeline/publish/"
                                + "EngineHooksExampleTest.java"),
                shown("docs/operations/engine-events.md"));
    }

    @ParameterizedTest
    @CsvSource({"EngineHostExampleTest, engine-host", "RegistrationExampleTest, discovery"})
    void theExamplesOfHostsAndRegistrationsAreThoseThatTheBuildRuns(String test, String page)
            throws IOException {
        assertEquals(
                examples("gateway/src/test/java/io/kvasir/gateway/" + test + ".java"),
                shown("docs/operations/" + page + ".md"));
    }

    @Test
    void noOtherPageShowsJava() throws IOException {
        try (Stream<Path> pages = Files.walk(ROOT.resolve("docs"))) {
            final Set<String> showing = new TreeSet<>();
            for (Path page : pages.filter(each -> each.toString().endsWith(".md")).toList()) {
                if (Files.readString(page).contains("```java")) {
                    showing.add(ROOT.relativize(page).toString());
                }
            }
            assertEquals(
                    Set.of(
                            "docs/embedding.md",
                            "docs/transfers.md",
                            "docs/operations/discovery.md",
                            "docs/operations/engine-events.md",
                            "docs/operations/engine-host.md"),
                    showing);
        }
    }

    /** What stands between the marks of a test, in its order. */
    private static List<String> examples(String test) throws IOException {
        return EXAMPLE.matcher(Files.readString(ROOT.resolve(test)))
                .results()
                .map(example -> example.group(1).stripTrailing().stripIndent() + "\n")
                .toList();
    }

    private static List<String> shown(String page) throws IOException {
        return SHOWN.matcher(Files.readString(ROOT.resolve(page)))
                .results()
                .map(shown -> shown.group(1))
                .toList();
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
