package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Documents that name tests as evidence name tests that there are. */
class NamedTestsTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));
    private static final Pattern NAME = Pattern.compile("\\b[A-Z][A-Za-z0-9]+Test\\b");
    private static final String SUFFIX = ".java";

    private static Set<String> tests() throws IOException {
        final Set<String> names = new TreeSet<>();
        try (Stream<Path> rooms = Files.list(ROOT)) {
            for (Path room : rooms.map(r -> r.resolve("src/test/java")).toList()) {
                if (Files.isDirectory(room)) {
                    try (Stream<Path> files = Files.walk(room)) {
                        files.map(file -> file.getFileName().toString())
                                .filter(name -> name.endsWith("Test" + SUFFIX))
                                .map(name -> name.substring(0, name.length() - SUFFIX.length()))
                                .forEach(names::add);
                    }
                }
            }
        }
        return names;
    }

    @Test
    void everyTestThatIsNamedIsThere() throws IOException {
        final Set<String> there = tests();
        for (String document : new String[] {"docs/features.md", "docs/complaints.md"}) {
            final Set<String> named =
                    NAME.matcher(Files.readString(ROOT.resolve(document)))
                            .results()
                            .map(match -> match.group())
                            .collect(Collectors.toCollection(TreeSet::new));
            assertTrue(named.size() > 50, document + " names " + named.size());
            named.removeAll(there);
            assertEquals(Set.of(), named, document);
        }
    }
}
