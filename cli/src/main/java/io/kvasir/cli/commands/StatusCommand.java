package io.kvasir.cli.commands;

import io.kvasir.cli.admin.AdminPort;
import io.kvasir.cli.admin.GatewayView;
import io.kvasir.cli.admin.ViewPrinter;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.util.concurrent.Callable;

/** {@code kvasir status}: a running gateway on one screen. */
@Command(
        name = "status",
        description = {
            "Show a running gateway on one screen: version, readiness, models, event plane,"
                    + " replicas, snapshots and workers.",
            "",
            "What is not as it should be comes first and is marked; of many workers the busiest"
                + " follow. Colour is used on a terminal, unless NO_COLOR is set or TERM is dumb.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir status",
            "  kvasir status --url http://10.0.0.5:9000 --token-file admin.token --rows 50",
            "",
            "Exit codes: 0 the gateway is ready; 1 it is not; 2 wrong command line; 3 no answer of"
                    + " a gateway, or a refusal."
        })
public final class StatusCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Mixin private AdminOptions admin;

    @Mixin private ShowOptions show;

    @Option(
            names = "--rows",
            paramLabel = "N",
            defaultValue = "20",
            description = "Workers to list. Default: ${DEFAULT-VALUE}.")
    private int rows;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (rows < 1) {
            throw common.wrong("--rows " + rows + " is not a positive number");
        }
        try (AdminPort port = admin.port(common)) {
            final ViewPrinter printer = new ViewPrinter(common.out(), rows, Terminal.hasColour());
            return show.repeat(
                    common,
                    0,
                    () -> {
                        final GatewayView view = GatewayView.of(port);
                        if (show.json()) {
                            Json.print(printer.json(view, null, false), common.out());
                        } else {
                            printer.status(view);
                        }
                        return view.ready() ? ExitCode.OK : ExitCode.NEGATIVE;
                    });
        }
    }
}
