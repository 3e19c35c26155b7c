package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** {@code docs/glossary.md} explains words that are used. */
class GlossaryTest {
    private static final Path PAGE = Documents.file("docs/glossary.md");

    @Test
    void eachWordIsUsedInADocumentOrTheSources() throws IOException {
        final StringBuilder all = new StringBuilder();
        append(all, Documents.file("docs"), ".md");
        try (Stream<Path> rooms = Files.list(Documents.file(""))) {
            for (Path room : rooms.toList()) {
                append(all, room.resolve("src/main/java"), ".java");
            }
        }
        final String text = all.toString().toLowerCase(Locale.ROOT);
        final List<String> unused =
                words().stream()
                        .filter(word -> !Pattern.compile("\\b" + word).matcher(text).find())
                        .toList();
        assertEquals(List.of(), unused);
    }

    private static void append(StringBuilder all, Path folder, String ending) throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.filter(each -> each.toString().endsWith(ending)).toList()) {
                if (!file.equals(PAGE)) {
                    all.append(Files.readString(file).replaceAll("\\s+(\\* )?", " ")).append('\n');
                }
            }
        }
    }

    private static List<String> words() throws IOException {
        return Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith("| ") && !line.startsWith("| Word "))
                .map(line -> line.substring("| ".length(), line.indexOf(" | ")))
                .flatMap(cell -> Stream.of(cell.split(", ", -1)))
                .map(word -> word.toLowerCase(Locale.ROOT))
                .toList();
    }
}
