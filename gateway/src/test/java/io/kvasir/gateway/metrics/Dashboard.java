package io.kvasir.gateway.metrics;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Json;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The dashboard for Grafana that is shipped.
 *
 * @param rows their titles, in order
 * @param variables what their values are asked for with
 */
record Dashboard(List<String> rows, List<Panel> panels, List<String> variables) {
    private static final Path FILE =
            Path.of(System.getProperty("kvasir.root"), "docs/operations/grafana/kvasir.json");

    /** What one shows. */
    record Panel(String title, String description, List<String> expressions) {}

    static Dashboard read() throws IOException {
        final JsonNode root = Json.MAPPER.readTree(Files.readString(FILE));
        final List<String> rows = new ArrayList<>();
        final List<Panel> panels = new ArrayList<>();
        final Set<Integer> ids = new HashSet<>();
        for (JsonNode panel : root.path("panels")) {
            final String title = panel.path("title").asText();
            if (!ids.add(panel.path("id").asInt())) {
                throw new IOException("the id of panel " + title + " is another one's, too");
            }
            if (panel.path("type").asText().equals("row")) {
                rows.add(title);
            } else {
                final List<String> expressions = new ArrayList<>();
                panel.path("targets")
                        .forEach(target -> expressions.add(target.path("expr").asText()));
                panels.add(new Panel(title, panel.path("description").asText(), expressions));
            }
        }
        final List<String> variables = new ArrayList<>();
        for (JsonNode variable : root.at("/templating/list")) {
            if (variable.path("type").asText().equals("query")) {
                variables.add(variable.path("query").asText());
            }
        }
        return new Dashboard(rows, panels, variables);
    }

    /** A file of recording rules with all expressions, as Prometheus' own tool reads it. */
    String asRules() {
        final StringBuilder rules = new StringBuilder("groups:\n- name: dashboard\n  rules:\n");
        int n = 0;
        for (Panel panel : panels) {
            for (String expression : panel.expressions()) {
                rules.append("  - record: panel:q" + n++)
                        .append("\n    expr: '")
                        .append(
                                expression
                                        .replace("$__rate_interval", "5m")
                                        .replace("$instance", ".*")
                                        .replace("$worker", ".*")
                                        .replace("'", "''"))
                        .append("'\n");
            }
        }
        return rules.toString();
    }
}
