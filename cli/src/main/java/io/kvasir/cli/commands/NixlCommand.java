package io.kvasir.cli.commands;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code kvasir nixl}: what moves KV blocks on this machine, and how fast. */
@Command(
        name = "nixl",
        description = {
            "Look at NIXL, which moves KV blocks between workers, and measure it.",
            "",
            "Without NIXL, blocks move through shared memory between processes of one machine.",
            ""
        },
        subcommands = {NixlDoctorCommand.class, NixlBenchCommand.class},
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "Examples:",
            "  kvasir nixl doctor",
            "  kvasir nixl bench --block-bytes 16384,131072 --blocks 1,64,512",
            "  UCX_TLS=tcp,self kvasir nixl bench --transport nixl",
            "",
            "Exit codes: 0 usable, or measured; 1 NIXL cannot be used here; 2 wrong command line; 3"
                    + " could not measure."
        })
public final class NixlCommand implements Runnable {
    @Mixin private CommonOptions common;

    @Override
    public void run() {
        throw common.wrong("no command given");
    }
}
