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
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir top}: what a running gateway does, again and again. */
@Command(
        name = "top",
        description = {
            "Show what a running gateway does, every two seconds: requests, decisions and tokens a"
                    + " second, cache hits, time to the first token, and its workers.",
            "",
            "The first screen has the averages since the start of the gateway, each further one"
                + " those since the one before. Workers that are not as they should be come first,"
                + " then the busiest.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir top",
            "  kvasir top --watch 10 --count 6 --json > minute.json",
            "",
            "Exit codes: 0 shown, and the gateway is ready; 1 shown, and it is not; 2 wrong command"
                    + " line; 3 no answer of a gateway, or a refusal. Without --once and --count it"
                    + " ends by ctrl-C, and with 3 when its output takes no more."
        })
public final class TopCommand implements Callable<Integer> {
    private static final double USUAL_SECONDS = 2;

    @Mixin private CommonOptions common;

    @Mixin private AdminOptions admin;

    @Mixin private ShowOptions show;

    @Option(names = "--once", description = "Show it once, as --watch 0.")
    private boolean once;

    @Option(
            names = "--rows",
            paramLabel = "N",
            defaultValue = "20",
            description = "Workers to list. Default: ${DEFAULT-VALUE}.")
    private int rows;

    private GatewayView before;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (rows < 1) {
            throw common.wrong("--rows " + rows + " is not a positive number");
        }
        for (String again : List.of("--watch", "--count")) {
            if (once && common.isGiven(again)) {
                throw common.wrong(
                        "--once and " + again + " " + common.given(again) + ": one of them");
            }
        }
        try (AdminPort port = admin.port(common)) {
            return show.repeat(common, once ? 0 : USUAL_SECONDS, () -> show(port));
        }
    }

    private int show(AdminPort port) throws InterruptedException {
        final GatewayView view = GatewayView.of(port);
        final ViewPrinter printer = new ViewPrinter(common.out(), rows, Terminal.hasColour());
        if (show.json()) {
            Json.print(printer.json(view, before, true), common.out());
        } else {
            printer.top(before, view);
        }
        before = view;
        return view.ready() ? ExitCode.OK : ExitCode.NEGATIVE;
    }
}
