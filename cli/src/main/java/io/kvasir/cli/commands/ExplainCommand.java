package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.admin.AdminPort;
import io.kvasir.cli.admin.Decisions;
import io.kvasir.cli.admin.Explanation;
import io.kvasir.cli.admin.ExplanationPrinter;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.util.concurrent.Callable;

/** {@code kvasir explain}: why a request went where it went. */
@Command(
        name = "explain",
        description = {
            "Say why a request went where it went, and what came of it.",
            "",
            "A running gateway is asked for the decisions of the request: one for each attempt and,"
                + " where prefill and decode are apart, for each leg. Shown are the chosen worker,"
                + " the terms of each candidate's cost, the runner-up and by how much it lost,"
                + " workers that were no candidates and why, and the cached tokens that were"
                + " predicted beside those that the engine reported.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir explain                       the newest decision",
            "  kvasir explain 5f0c3a91 --url http://10.0.0.5:9000 --token-file admin.token",
            "",
            "Exit codes: 0 found; 1 not held any more, or no decision has been made; 2 wrong"
                    + " command line; 3 no answer from the gateway, or a refusal."
        })
public final class ExplainCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Mixin private AdminOptions admin;

    @Parameters(
            arity = "0..1",
            paramLabel = "REQUEST_ID",
            description =
                    "Header x-request-id of the answer; also in logs and errors. Default: that of"
                            + " the newest decision.")
    private String id;

    @Option(
            names = "--rows",
            paramLabel = "N",
            defaultValue = "20",
            description = "Candidates to list. Default: ${DEFAULT-VALUE}.")
    private int rows;

    @Option(names = "--json", description = "Print one JSON object instead of the text.")
    private boolean json;

    @Override
    public Integer call() throws InterruptedException {
        if (rows < 1) {
            throw common.wrong("--rows " + rows + " is not a positive number");
        }
        if (id != null && id.isBlank()) {
            throw common.wrong("REQUEST_ID is blank");
        }
        try (AdminPort port = admin.port(common)) {
            final Decisions decisions = Decisions.of(port, id);
            if (json) {
                printJson(decisions);
            } else if (decisions.explained().isEmpty()) {
                common.err().println(decisions.missing());
                common.err().flush();
            } else {
                new ExplanationPrinter(common.out(), rows, Terminal.hasColour()).print(decisions);
            }
            return decisions.explained().isEmpty() ? ExitCode.NEGATIVE : ExitCode.OK;
        }
    }

    private void printJson(Decisions decisions) {
        final ObjectNode root = Json.object();
        root.put("request_id", decisions.requestId());
        if (!decisions.missing().isEmpty()) {
            root.put("missing", decisions.missing());
        }
        final ArrayNode list = root.putArray("decisions");
        for (Explanation explained : decisions.explained()) {
            list.add(explained.json());
        }
        Json.print(root, common.out());
    }
}
