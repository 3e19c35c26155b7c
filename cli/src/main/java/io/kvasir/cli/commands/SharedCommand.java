package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.chronicle.HostState;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.TextTable;
import io.kvasir.router.spi.SavedWorker;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir shared}: what the routers of a host have saved last. */
@Command(
        name = "shared",
        description = {
            "Show what the gateways of this host have saved last.",
            "",
            "Reads the memory that they share (--shared-memory-dir beside --state-dir): each"
                    + " worker with the last event message of its newest snapshot, and the"
                    + " snapshots.",
            ""
        },
        footer = {
            "",
            "Example:",
            "  kvasir shared /dev/shm/kvasir-gateway",
            "",
            "Exit codes: 0 shown; 2 wrong command line; 3 the folder cannot be used."
        })
public final class SharedCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Parameters(index = "0", paramLabel = "DIR", description = "The shared-memory-dir.")
    private Path folder;

    @Option(names = "--json", description = "Print one JSON object instead of the tables.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        if (!folder.toFile().isDirectory()) {
            throw new IOException(folder + " is no folder");
        }
        try (HostState host = new HostState(folder)) {
            if (json) {
                printJson(host.workers(), host.snapshots());
            } else {
                printTables(host.workers(), host.snapshots());
            }
        }
        return ExitCode.OK;
    }

    private void printTables(
            List<HostState.WorkerEntry> workers, List<HostState.SnapshotEntry> snapshots) {
        final PrintWriter out = common.out();
        final TextTable first =
                new TextTable(
                        "store", "worker", "url", "generation", "last event", "digest", "snapshot");
        for (HostState.WorkerEntry entry : workers) {
            final SavedWorker worker = entry.worker();
            first.row(
                    entry.store(),
                    worker.name() + "/" + worker.dpRank(),
                    worker.url(),
                    Long.toString(worker.generation()),
                    Long.toString(worker.lastEvent()),
                    Long.toHexString(worker.digest()),
                    entry.snapshot());
        }
        first.print(out);
        final TextTable second = new TextTable("store", "snapshot", "bytes", "crc32c", "saved");
        for (HostState.SnapshotEntry entry : snapshots) {
            second.row(
                    entry.store(),
                    entry.name(),
                    Long.toString(entry.bytes()),
                    Integer.toHexString(entry.crc()),
                    Instant.ofEpochMilli(entry.putMs()).toString());
        }
        second.print(out);
        out.flush();
    }

    private void printJson(
            List<HostState.WorkerEntry> workers, List<HostState.SnapshotEntry> snapshots)
            throws IOException {
        final ObjectNode root = Json.MAPPER.createObjectNode();
        final ArrayNode all = root.putArray("workers");
        for (HostState.WorkerEntry entry : workers) {
            final SavedWorker worker = entry.worker();
            all.addObject()
                    .put("store", entry.store())
                    .put("worker", worker.name())
                    .put("dp_rank", worker.dpRank())
                    .put("url", worker.url())
                    .put("id", Long.toUnsignedString(worker.id()))
                    .put("generation", worker.generation())
                    .put("last_event", worker.lastEvent())
                    .put("digest", Long.toHexString(worker.digest()))
                    .put("snapshot", entry.snapshot());
        }
        final ArrayNode objects = root.putArray("snapshots");
        for (HostState.SnapshotEntry entry : snapshots) {
            objects.addObject()
                    .put("store", entry.store())
                    .put("name", entry.name())
                    .put("bytes", entry.bytes())
                    .put("crc32c", Integer.toHexString(entry.crc()))
                    .put("saved_ms", entry.putMs());
        }
        common.out().println(Json.MAPPER.writeValueAsString(root));
        common.out().flush();
    }
}
