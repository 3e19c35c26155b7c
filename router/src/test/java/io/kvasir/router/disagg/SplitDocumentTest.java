package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The page about split requests has the table as it is; see {@link Documents}. */
class SplitDocumentTest {
    private static final Path PAGE = Documents.file("docs/operations/disaggregation.md");

    @Test
    void thePageHasEveryRow() throws IOException {
        final StringBuilder out = new StringBuilder();
        out.append("| State | Event | Next state | Actions, in this order |\n|---|---|---|---|\n");
        for (SplitTable.Row row : SplitTable.rows()) {
            out.append("| ").append(row.state()).append(" | ").append(row.event()).append(" | ");
            out.append(row.next()).append(" | ").append(names(row.actions())).append(" |\n");
        }
        Documents.checkPart(PAGE, "rows", out.toString());
    }

    @Test
    void theDiagramHasEveryRow() throws IOException {
        final Map<String, List<SplitEvent>> edges = new LinkedHashMap<>();
        for (SplitTable.Row row : SplitTable.rows()) {
            edges.computeIfAbsent(row.state() + " --> " + row.next(), _ -> new ArrayList<>())
                    .add(row.event());
        }
        final StringBuilder out = new StringBuilder("```mermaid\nstateDiagram-v2\n");
        out.append("    [*] --> ").append(SplitState.SELECT_PREFILL).append('\n');
        edges.forEach(
                (edge, events) ->
                        out.append("    ")
                                .append(edge)
                                .append(" : ")
                                .append(names(events))
                                .append('\n'));
        for (SplitState state : SplitState.values()) {
            if (state.isEnd()) {
                out.append("    ").append(state).append(" --> [*]\n");
            }
        }
        Documents.checkPart(PAGE, "diagram", out.append("```\n").toString());
    }

    @Test
    void thePageSaysWhatEveryStateEventActionAndPolicyIs() throws IOException {
        final String page = Files.readString(PAGE);
        Stream.of(SplitState.values(), SplitEvent.values(), SplitAction.values())
                .flatMap(Stream::of)
                .map(name -> "| `" + name + "` |")
                .forEach(name -> assertTrue(page.contains(name), name));
        for (FallbackPolicy policy : FallbackPolicy.values()) {
            assertTrue(page.contains("| `" + policy.spelling() + "` |"), policy.toString());
        }
        for (String kind : List.of(SplitFlow.INTERNAL, SplitFlow.TIMEOUT)) {
            assertTrue(page.contains("`" + kind + "`"), kind);
        }
    }

    private static String names(List<? extends Enum<?>> values) {
        return values.stream().map(Enum::name).collect(Collectors.joining(", "));
    }
}
