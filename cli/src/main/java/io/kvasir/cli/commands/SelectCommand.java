package io.kvasir.cli.commands;

import io.kvasir.router.settings.SessionMode;
import io.kvasir.services.select.SelectConfig;
import io.kvasir.services.select.SelectService;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;

/** {@code kvasir select}: the choice of workers as a service of its own. */
@Command(
        name = "select",
        description = {
            "Run the choice of workers as an HTTP service.",
            "",
            "Callers name workers, ask where a prompt should go, and reserve; engines' KV events"
                + " come over ZMQ. Speaks the HTTP interface of NVIDIA Dynamo's selection service."
                + " There is no authentication.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir select --port 8092",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use."
        })
public final class SelectCommand implements Callable<Integer> {
    private static final int USUAL_PORT = 8092;
    private static final long MOST_SESSION_SECONDS = SelectConfig.MOST_SESSION_TTL.toSeconds();

    @Mixin private CommonOptions common;

    @Mixin private final ServiceOptions listen = new ServiceOptions(USUAL_PORT);

    @Mixin private TrackerOptions tracker;

    @Mixin private IndexOptions indexes;

    @Option(
            names = "--selection-cache-ttl-secs",
            paramLabel = "S",
            defaultValue = "60",
            description =
                    "How long a selection with an id waits for its reservation. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long selectionTtlSeconds;

    @Option(
            names = "--selection-cache-max-entries",
            paramLabel = "N",
            defaultValue = "65536",
            description =
                    "Selections that wait for a reservation at once; the oldest gives way. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int maxSelections;

    @Option(
            names = {"--session-affinity-ttl-secs"},
            paramLabel = "S",
            defaultValue = "0",
            description =
                    "How long after its last reservation a session (session_id) stays with its"
                            + " worker; 0 = not at all. Default: ${DEFAULT-VALUE}.")
    private long sessionTtlSeconds;

    @Option(
            names = "--session-affinity-mode",
            paramLabel = "MODE",
            defaultValue = "hard",
            description =
                    "hard: the session's worker as long as it may be chosen; soft: unless its load"
                            + " exceeds the least one by more than the blocks of the prompt."
                            + " Default: ${DEFAULT-VALUE}.")
    private SessionMode sessionMode;

    @Override
    public Integer call() throws IOException, InterruptedException {
        check();
        final SelectService service = common.made(() -> new SelectService(config()));
        return listen.run(common, "select", service::start, service::close, service::port);
    }

    private void check() {
        listen.check(common);
        tracker.check(common);
        indexes.check(common);
        common.within(
                "--selection-cache-ttl-secs", selectionTtlSeconds, 1, CommonOptions.MOST_SECONDS);
        common.atLeast("--selection-cache-max-entries", maxSelections, 1);
        common.within("--session-affinity-ttl-secs", sessionTtlSeconds, 0, MOST_SESSION_SECONDS);
    }

    private SelectConfig config() {
        return SelectConfig.of(listen.host(), listen.port())
                .withSlots(tracker.config(listen))
                .withIndexes(indexes.maxModels(), indexes.indexBytes())
                .withSelections(Duration.ofSeconds(selectionTtlSeconds), maxSelections)
                .withSessions(Duration.ofSeconds(sessionTtlSeconds), sessionMode);
    }
}
