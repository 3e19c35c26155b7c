package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.admin.AdminPort;
import io.kvasir.cli.admin.GatewaySettingsPage;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.TextTable;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir settings}: what a running gateway is set to, and how it is changed. */
@Command(
        name = "settings",
        description = {
            "Show and change the settings of a running gateway.",
            "",
            "Without arguments: those that are not the default, where each is from, and what its"
                + " file wants and only a start can give. NAME=VALUE changes a setting that is"
                + " live, NAME= withdraws such a change; several are changed all or none. A change"
                + " lasts until it is withdrawn or the gateway ends, whatever its file says"
                + " meanwhile.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir settings",
            "  kvasir settings temperature=0.5 mode=kv --dry-run",
            "  kvasir settings overlap-weight=2 --model n --if-version 3",
            "",
            "Exit codes: 0 done; 1 refused, nothing is changed; 2 wrong command line; 3 no answer"
                    + " from the gateway."
        })
public final class SettingsCommand implements Callable<Integer> {
    private static final int MOST_WORDS = 400;

    @Mixin private CommonOptions common;

    @Mixin private AdminOptions admin;

    @Parameters(
            arity = "0..*",
            paramLabel = "NAME=VALUE",
            description = "What to change; elements of lists with blanks between.")
    private List<String> changes = new ArrayList<>();

    @Option(names = "--all", description = "Show all settings, those with their defaults too.")
    private boolean all;

    @Option(
            names = "--model",
            paramLabel = "NAME",
            description =
                    "Model whose settings are changed. Default: the gateway's, which are those of"
                            + " its first model and of any other that has none of its own.")
    private String model;

    @Option(
            names = "--if-version",
            paramLabel = "N",
            description = "Change only if the settings are at this version.")
    private Long version;

    @Option(names = "--dry-run", description = "Check and say what would change.")
    private boolean dryRun;

    @Option(names = "--json", description = "Print the gateway's answer instead of text.")
    private boolean json;

    @Override
    public Integer call() throws InterruptedException {
        final ObjectNode body = body();
        try (AdminPort port = admin.port(common)) {
            return changes.isEmpty() ? show(port) : change(port, body);
        }
    }

    private ObjectNode body() {
        final ObjectNode body = Json.object();
        final ObjectNode settings = body.putObject("settings");
        for (String change : changes) {
            final int equals = change.indexOf('=');
            if (equals < 1) {
                throw common.wrong("'" + change + "' is not NAME=VALUE");
            }
            final String name = change.substring(0, equals);
            final String value = change.substring(equals + 1);
            if (settings.has(name)) {
                throw common.wrong("'" + name + "' is given twice; one value would be dropped");
            }
            settings.put(name, value.isEmpty() ? null : value);
        }
        if (model != null) {
            body.put("model", model);
        }
        if (version != null) {
            body.put("version", version);
        }
        if (changes.isEmpty() && (model != null || version != null || dryRun)) {
            throw common.wrong("--model, --if-version and --dry-run are for a change: NAME=VALUE");
        }
        return body.put("dry_run", dryRun);
    }

    private int show(AdminPort port) throws InterruptedException {
        final ObjectNode page = GatewaySettingsPage.read(port);
        final PrintWriter out = common.out();
        if (json) {
            Json.print(page, out);
            return ExitCode.OK;
        }
        out.println("settings version " + page.path("version").asLong());
        out.println();
        table(page.path("settings"), out);
        final JsonNode models = page.path("models");
        for (int i = 1; i < models.size(); i++) { // the first has the gateway's
            out.println();
            out.println("model " + printable(models.get(i).path("model").asText()) + ", others:");
            table(models.get(i).path("settings"), out);
        }
        for (JsonNode late : page.path("waiting_for_start")) {
            out.println();
            out.println(
                    "! "
                            + (late.path("model").isTextual()
                                    ? "model " + printable(late.path("model").asText()) + ": "
                                    : "")
                            + printable(late.path("name").asText())
                            + " is "
                            + text(late.path("value"))
                            + " in the file now, and holds after the next start");
        }
        out.flush();
        return ExitCode.OK;
    }

    private void table(JsonNode rows, PrintWriter out) {
        final TextTable table =
                new TextTable("setting", "value", "from", "live").left("value", "from", "live");
        for (JsonNode row : rows) {
            if (all || !row.path("source").asText().equals("default")) {
                table.row(
                        printable(row.path("name").asText()),
                        text(row.path("value")),
                        printable(row.path("origin").asText()),
                        row.path("live").asBoolean() ? "yes" : "no");
            }
        }
        table.print(out);
    }

    private int change(AdminPort port, ObjectNode body) throws InterruptedException {
        final GatewaySettingsPage.Change change = GatewaySettingsPage.change(port, body);
        final PrintWriter out = common.out();
        if (json) {
            Json.print(change.page(), out);
        } else if (!change.refusal().isEmpty()) {
            common.err().println("refused, nothing is changed: " + change.refusal());
            common.err().flush();
        } else {
            print(change.page(), out);
        }
        return change.refusal().isEmpty() ? ExitCode.OK : ExitCode.NEGATIVE;
    }

    private void print(JsonNode page, PrintWriter out) {
        for (JsonNode each : page.path("changed")) {
            out.println(
                    (each.path("model").isTextual()
                                    ? printable(each.path("model").asText()) + ": "
                                    : "")
                            + printable(each.path("name").asText())
                            + ": "
                            + text(each.path("from"))
                            + " -> "
                            + text(each.path("to")));
        }
        for (JsonNode warning : page.path("warnings")) {
            out.println("warning: " + printable(warning.asText()));
        }
        out.println(
                (dryRun
                                ? "nothing is changed (--dry-run); settings version "
                                : page.path("changed").isEmpty()
                                        ? "no value is another one; settings version "
                                        : "settings version ")
                        + page.path("version").asLong());
        out.flush();
    }

    private static String text(JsonNode value) {
        if (value instanceof ArrayNode list) {
            final List<String> texts = new ArrayList<>();
            list.forEach(each -> texts.add(each.asText()));
            return printable(String.join(" ", texts));
        }
        return value.isNull() ? "-" : printable(value.asText());
    }

    private static String printable(String text) {
        return Terminal.printable(text, MOST_WORDS);
    }
}
