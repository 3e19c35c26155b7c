package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** {@code docs/architecture.md} names the threads of a process as a thread dump does, and rooms. */
class ThreadsPageTest {
    /** A name that is given to a thread, or to what names its threads by it. */
    private static final Pattern NAMED =
            Pattern.compile(
                    "(?:\\b(?:name|setName|pool|start|Thread|WriterThread|SocketPoller|SourceLane"
                            + "|RouterTicker)\\((?:\\s*\\w+,)?\\s*|THREAD = )\"(kvasir-[a-z-]+)");

    /** Rooms of what measures and simulates. */
    private static final Set<String> LEFT_OUT = Set.of("bench", "op-streams", "engine-sim");

    private static String page() throws IOException {
        return Files.readString(Documents.file("docs/architecture.md"));
    }

    @Test
    void eachThreadIsThereByItsName() throws IOException {
        final String page = page();
        final List<String> missing = new ArrayList<>();
        final Set<String> names = names();
        assertTrue(names.contains("kvasir-index-writer"), names.toString());
        for (String name : names) {
            if (!page.contains("`" + name)) {
                missing.add(name);
            }
        }
        assertEquals(List.of(), missing);
    }

    private static Set<String> names() throws IOException {
        final Set<String> names = new TreeSet<>();
        for (Path room : rooms()) {
            final Path sources = room.resolve("src/main/java");
            if (LEFT_OUT.contains(room.getFileName().toString()) || !Files.exists(sources)) {
                continue;
            }
            try (Stream<Path> files = Files.walk(sources)) {
                for (Path file : files.filter(each -> each.toString().endsWith(".java")).toList()) {
                    NAMED.matcher(Files.readString(file))
                            .results()
                            .forEach(found -> names.add(found.group(1)));
                }
            }
        }
        return names;
    }

    private static List<Path> rooms() throws IOException {
        try (Stream<Path> folders = Files.list(Documents.file(""))) {
            return folders.filter(each -> Files.exists(each.resolve("pom.xml"))).sorted().toList();
        }
    }

    @Test
    void eachRoomIsInTheTable() throws IOException {
        final String page = page();
        final List<String> missing = new ArrayList<>();
        for (Path room : rooms()) {
            if (!page.contains("\n| `" + room.getFileName() + "` |")) {
                missing.add(room.getFileName().toString());
            }
        }
        assertEquals(List.of("test-support"), missing);
    }
}
