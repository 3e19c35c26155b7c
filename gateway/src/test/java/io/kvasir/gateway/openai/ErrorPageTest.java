package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.router.RouteException;
import io.kvasir.router.queue.QueueException;
import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** {@code docs/operations/errors.md} has the members of an error, its legs and its kinds. */
class ErrorPageTest {
    private static final Path PAGE = Documents.file("docs/operations/errors.md");
    private static final Path SOURCES = Documents.file("gateway/src/main/java");

    /** A 4xx of the gateway's own: status, parameter, code, kind. */
    private static final Pattern OF_CLIENT =
            Pattern.compile("\\bclient\\(\\s*[^,()]+,\\s*[^,()]+,\\s*[^,()]+,\\s*\"(\\w+)\"");

    private static final Pattern WORD = Pattern.compile("`([a-z_.]+)`");

    /** What is in the first cell of the rows of a part of the page. */
    private static Set<String> firstCells(String from, String to) throws IOException {
        final String page = Files.readString(PAGE);
        final Set<String> words = new TreeSet<>();
        page.substring(page.indexOf(from), page.indexOf(to))
                .lines()
                .filter(line -> line.startsWith("| `"))
                .map(line -> line.split(" \\| ", -1)[0])
                .flatMap(cell -> WORD.matcher(cell).results())
                .forEach(word -> words.add(word.group(1)));
        return words;
    }

    @Test
    void eachKindOfAFailureIsOnThePage() throws IOException {
        final Set<String> kinds = new TreeSet<>(List.of("invalid_request", "no_worker"));
        for (UpstreamFault fault : UpstreamFault.values()) {
            kinds.add(fault.spelling());
        }
        for (RouteException.Kind kind : RouteException.Kind.values()) {
            kinds.add(kind.spelling());
        }
        for (QueueException.Kind kind : QueueException.Kind.values()) {
            kinds.add(kind.spelling());
        }
        kinds.addAll(
                List.of("overloaded", "draining", "internal", "closed", "no_blocks", "malformed"));
        kinds.addAll(kindsOfClients());
        assertEquals(kinds, firstCells("## Kinds", "Which failures"));
    }

    private static Set<String> kindsOfClients() throws IOException {
        final Set<String> kinds = new TreeSet<>();
        try (Stream<Path> files = Files.walk(SOURCES)) {
            for (Path file : files.filter(each -> each.toString().endsWith(".java")).toList()) {
                OF_CLIENT
                        .matcher(Files.readString(file))
                        .results()
                        .forEach(found -> kinds.add(found.group(1)));
            }
        }
        assertTrue(kinds.contains("model_not_found"), kinds.toString());
        return kinds;
    }

    @Test
    void eachMemberOfAnErrorIsOnThePage() throws IOException {
        final Set<String> members = new TreeSet<>();
        final ApiException.Limits limits = new ApiException.Limits("queue-max-requests", 1, 1, 1);
        collect(ApiException.notQueued(429, "queue_full", limits, "full").json("id"), members);
        assertEquals(members, firstCells("| Member", "Each 429"));
    }

    private static void collect(ObjectNode json, Set<String> members) {
        json.get("error").fieldNames().forEachRemaining(members::add);
        members.remove("kvasir");
        json.get("error")
                .get("kvasir")
                .fieldNames()
                .forEachRemaining(n -> members.add("kvasir." + n));
    }

    @Test
    void eachLegIsOnThePage() throws IOException {
        final String page = Files.readString(PAGE);
        for (ApiException.Leg leg : ApiException.Leg.values()) {
            assertTrue(page.contains("`" + leg.spelling + "`"), leg.spelling);
        }
    }
}
