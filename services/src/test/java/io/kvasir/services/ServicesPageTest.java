package io.kvasir.services;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** {@code docs/operations/services.md} has each call of each service. */
class ServicesPageTest {
    private static final Pattern ENTRY = Pattern.compile("Map\\.entry\\(\\s*\"(/[^\"]+)\"");
    private static final Pattern ROW =
            Pattern.compile("(?m)^\\| (`(?:GET|POST|PATCH|DELETE).*?) \\| ");
    private static final Pattern CALL = Pattern.compile("`[A-Z]+ (/[A-Za-z_/]+)`");

    @ParameterizedTest
    @CsvSource({
        "indexer/IndexerApi, Indexer, Slots",
        "slots/SlotsApi, Slots, Select",
        "select/SelectApi, Select, ''"
    })
    void eachCallIsInTheTableOfItsService(String api, String section, String next)
            throws IOException {
        final Set<String> served = new TreeSet<>();
        final String source =
                Files.readString(
                        Documents.file(
                                "services/src/main/java/io/kvasir/services/" + api + ".java"));
        ENTRY.matcher(source)
                .results()
                .forEach(entry -> served.add(entry.group(1).replace("{}", "ID")));
        final Set<String> listed = new TreeSet<>();
        final String page = Files.readString(Documents.file("docs/operations/services.md"));
        final int to = next.isEmpty() ? page.length() : page.indexOf("\n## " + next + "\n");
        ROW.matcher(page.substring(page.indexOf("\n## " + section + "\n"), to))
                .results()
                .flatMap(row -> CALL.matcher(row.group(1)).results())
                .forEach(call -> listed.add(call.group(1)));
        assertEquals(served, listed);
    }
}
