package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.nixl.probe.BackendProbe;
import io.kvasir.nixl.probe.LaneProbe;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.panama.cuda.CudaProbe;
import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.panama.nixl.NixlAvailability.Absent;
import io.kvasir.panama.nixl.NixlAvailability.Attempt;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlProbe;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.Map;
import java.util.concurrent.Callable;

/** {@code kvasir nixl doctor}: what of NIXL is usable here, and why the rest is not. */
@Command(
        name = "doctor",
        description = {
            "Say what of NIXL is usable on this machine: the library, the backends that really"
                    + " open, CUDA, the lanes that UCX chooses and what they bring.",
            "",
            "A plugin that is listed is only a file; it counts when its backend opens. The"
                    + " measurement runs in processes of its own.",
            ""
        })
final class NixlDoctorCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Option(names = "--no-transfer", description = "Do not measure a transfer.")
    private boolean noTransfer;

    @Option(names = "--json", description = "Print one JSON object instead of lines.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        final NixlAvailability nixl = NixlProbe.probe();
        final Map<String, String> backends =
                nixl instanceof Available ? BackendProbe.open() : Map.of();
        final LaneProbe.Lanes lanes =
                noTransfer ? LaneProbe.Lanes.NOT_ASKED : LaneProbe.measure(TransferEnd.best());
        if (json) {
            printJson(nixl, backends, lanes);
        } else {
            printLines(nixl, backends, lanes);
        }
        return nixl instanceof Available available && !available.loopback()
                ? ExitCode.OK
                : ExitCode.NEGATIVE;
    }

    private void printLines(
            NixlAvailability nixl, Map<String, String> backends, LaneProbe.Lanes lanes) {
        final PrintWriter out = common.out();
        out.println("nixl      " + nixl.describe());
        if (nixl instanceof Absent absent) {
            for (Attempt attempt : absent.attempts()) {
                out.println("          looked at " + attempt.place() + ": " + attempt.outcome());
            }
        }
        backends.forEach((plugin, outcome) -> out.println("backend   " + plugin + " " + outcome));
        out.println("cuda      " + CudaProbe.probe().describe());
        out.println("transfer  " + lanes.describe());
        out.flush();
    }

    private void printJson(
            NixlAvailability nixl, Map<String, String> backends, LaneProbe.Lanes lanes) {
        final ObjectNode root = Json.object();
        final ObjectNode library = root.putObject("nixl");
        library.put("usable", nixl instanceof Available available && !available.loopback());
        library.put("answer", nixl.describe());
        if (nixl instanceof Available available) {
            library.put("path", available.path()).put("version", available.version());
        }
        if (nixl instanceof Absent absent) {
            final ArrayNode attempts = library.putArray("attempts");
            for (Attempt attempt : absent.attempts()) {
                attempts.addObject()
                        .put("place", attempt.place())
                        .put("outcome", attempt.outcome());
            }
        }
        final ObjectNode opened = root.putObject("backends");
        backends.forEach(opened::put);
        root.put("cuda", CudaProbe.probe().describe());
        putLanes(root.putObject("transfer"), lanes);
        Json.print(root, common.out());
    }

    private static void putLanes(ObjectNode node, LaneProbe.Lanes lanes) {
        node.put("transport", lanes.transport())
                .put("gb_per_s", lanes.gbPerSecond())
                .put("p50_us", lanes.p50Us());
        final ArrayNode names = node.putArray("lanes");
        lanes.lanes().forEach(names::add);
        if (!lanes.failure().isEmpty()) {
            node.put("failure", lanes.failure());
        }
    }
}
