package io.kvasir.cli.commands;

import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.services.slots.SlotsReplication;
import io.kvasir.services.slots.SlotsService;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;

/** {@code kvasir slots}: the load of workers as a service of its own. */
@Command(
        name = "slots",
        description = {
            "Run the tracker of running requests as an HTTP service.",
            "",
            "Callers register workers, say which requests run where, and ask how loaded each worker"
                    + " is or would be. Speaks the HTTP interface of NVIDIA Dynamo's slot tracker."
                    + " There is no authentication.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir slots --port 8091",
            "  kvasir slots --replica-sync --nats nats://nats:4222",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use."
        })
public final class SlotsCommand implements Callable<Integer> {
    private static final int USUAL_PORT = 8091;

    @Mixin private CommonOptions common;

    @Mixin private final ServiceOptions listen = new ServiceOptions(USUAL_PORT);

    @Mixin private TrackerOptions tracker;

    @Option(
            names = "--replica-sync",
            description =
                    "Share the requests with other trackers over the same workers, so that each"
                            + " one's loads are those of all. Needs --nats.")
    private boolean replicaSync;

    @Option(
            names = "--nats",
            paramLabel = "URLS",
            description = "Where the trackers meet; several servers with commas between.")
    private String natsUrls;

    @Option(
            names = "--nats-namespace",
            paramLabel = "NAME",
            defaultValue = "dynamo",
            description = "Namespace of the trackers on NATS. Default: ${DEFAULT-VALUE}.")
    private String namespace;

    @Option(
            names = "--nats-component",
            paramLabel = "NAME",
            defaultValue = "slots",
            description =
                    "Component of the trackers on NATS; no router's. Default: ${DEFAULT-VALUE}.")
    private String component;

    @Option(
            names = "--replica-id",
            paramLabel = "N",
            description =
                    "Number of this tracker, each another one; one that is kept lets the others see"
                            + " a restart at once. Default: a random one.")
    private Long replicaId;

    @Option(
            names = "--replica-digest-ms",
            paramLabel = "MS",
            defaultValue = "1000",
            description =
                    "Time between digests, by which trackers find what they have lost. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long digestMs;

    @Option(
            names = "--replica-lease-ms",
            paramLabel = "MS",
            defaultValue = "10000",
            description =
                    "Silence after which another tracker's requests count no more; several times"
                            + " --replica-digest-ms. Default: ${DEFAULT-VALUE}.")
    private long leaseMs;

    @Option(
            names = "--replica-max-requests",
            paramLabel = "N",
            defaultValue = "65536",
            description =
                    "Requests of all other trackers together that are counted. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int replicaMaxRequests;

    @Mixin private NatsOptions nats;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (natsUrls != null && !replicaSync) {
            throw common.wrong("--nats is for --replica-sync, which is not given");
        }
        listen.check(common);
        tracker.check(common);
        final SlotsReplication replication = replicaSync ? replication() : null;
        final SlotsService service =
                common.made(() -> new SlotsService(tracker.config(listen), replication));
        return listen.run(common, "slots", service::start, service::close, service::port);
    }

    private SlotsReplication replication() throws IOException {
        if (natsUrls == null) {
            throw common.wrong("--replica-sync needs --nats");
        }
        nats.check(common, natsUrls);
        if (replicaId != null) {
            common.atLeast("--replica-id", replicaId, 1);
        }
        final long most = SlotsReplication.LONGEST.toMillis();
        common.within(
                "--replica-digest-ms", digestMs, SlotsReplication.SHORTEST.toMillis(), most - 1);
        common.within("--replica-lease-ms", leaseMs, digestMs + 1, most);
        common.atLeast("--replica-max-requests", replicaMaxRequests, 1);
        common.notBlank("--nats-namespace", namespace);
        common.notBlank("--nats-component", component);
        try {
            return new SlotsReplication(
                    new NatsReplicaLink(
                            new NatsReplicaConfig(
                                    nats.access(natsUrls),
                                    namespace,
                                    component,
                                    "",
                                    WireForm.MSGPACK,
                                    1)),
                    replicaId,
                    Duration.ofMillis(digestMs),
                    Duration.ofMillis(leaseMs),
                    replicaMaxRequests);
        } catch (IllegalArgumentException e) {
            throw common.wrong("--replica-sync: " + e.getMessage());
        }
    }
}
