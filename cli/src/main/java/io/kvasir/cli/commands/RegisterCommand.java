package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Shutdown;
import io.kvasir.cli.http.BoundedClient;
import io.kvasir.gateway.WorkerStores;
import io.kvasir.gateway.openai.HealthAnswer;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceRole;
import io.kvasir.registry.LeaseTtl;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.ModelInput;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.WatchedRegistration;
import io.kvasir.registry.etcd.EtcdStore;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.registry.kubernetes.KubernetesStore;
import io.kvasir.registry.kubernetes.OwnerPod;

import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** {@code kvasir register}: keeps an engine registered while it answers. */
@Command(
        name = "register",
        description = {
            "Keep an engine registered while it answers.",
            "",
            "For engines that do not register themselves, such as vLLM's server: run it beside the"
                + " engine. It asks GET /health, registers the engine under a lease when it"
                + " answers, takes it back when it does not any more, and says that it drains"
                + " before it ends. Gateways with discovery-nats-bucket, discovery-etcd-endpoints"
                + " or discovery-kubernetes-resources follow.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir register --url http://10.0.0.7:8000 --model m --name w0 --block-size 16 \\",
            "    --events tcp://10.0.0.7:5557 --replay tcp://10.0.0.7:5558 --nats nats://nats:4222",
            "  kvasir register --url http://10.0.0.8:8000 --model m --name p0 --role prefill \\",
            "    --etcd http://etcd:2379",
            "  kvasir register --url http://$POD_IP:8000 --model m --name $POD_NAME --kubernetes"
                    + " serving",
            "",
            "Exit codes: 2 wrong command line; 3 could not start (bad file), or a newer run under"
                    + " the same name took its place; 130/143 ended by ctrl-C/kill."
        })
public final class RegisterCommand implements Callable<Integer> {
    private static final Duration PERIOD = Duration.ofSeconds(1);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    /** What says more of one store, by the option that names the store. */
    private static final Map<String, List<String>> OF_STORES =
            Map.of(
                    "--nats",
                    List.of("--credentials", "--trust-store", "--key-store", "--bucket"),
                    "--etcd",
                    List.of(
                            "--etcd-user",
                            "--etcd-password-file",
                            "--etcd-trust-store",
                            "--prefix"),
                    "--kubernetes",
                    List.of("--kubernetes-server", "--kubernetes-account"));

    /** Of an answer about health, whose text is not used. */
    private static final long MOST_BYTES = 1L << 20;

    @Mixin private CommonOptions common;
    @Mixin private NatsOptions natsAccess;
    @Mixin private EtcdAccessOptions etcdAccess;

    @Option(
            names = "--url",
            paramLabel = "URL",
            converter = Converters.Url.class,
            required = true,
            description = "The engine's server as gateways reach it, without /v1.")
    private URI url;

    @Option(
            names = "--model",
            paramLabel = "NAME",
            required = true,
            description = "Name under which the model is served.")
    private String model;

    @Option(
            names = "--name",
            paramLabel = "NAME",
            required = true,
            description = "Name of the instance, unique in its namespace.")
    private String name;

    @Option(
            names = "--namespace",
            paramLabel = "NAME",
            defaultValue = InstanceId.DEFAULT_NAMESPACE,
            description = "Namespace of the instance. Default: ${DEFAULT-VALUE}.")
    private String namespace;

    @Option(
            names = "--component",
            paramLabel = "NAME",
            defaultValue = "backend",
            description = "Component of the instance. Default: ${DEFAULT-VALUE}.")
    private String component;

    @Option(
            names = "--endpoint",
            paramLabel = "NAME",
            defaultValue = "generate",
            description = "Endpoint of the instance. Default: ${DEFAULT-VALUE}.")
    private String endpoint;

    @Option(
            names = "--role",
            paramLabel = "ROLE",
            defaultValue = "both",
            description = "both, prefill or decode. Default: ${DEFAULT-VALUE}.")
    private InstanceRole role;

    @Option(
            names = "--input",
            paramLabel = "KIND",
            defaultValue = "text",
            description =
                    "What it is sent of a prompt: text, or tokens (their ids, over"
                            + " /v1/completions). Default: ${DEFAULT-VALUE}.")
    private ModelInput input;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            defaultValue = "0",
            description = "The engine's tokens per block; 0 = not said. Default: ${DEFAULT-VALUE}.")
    private int blockSize;

    @Option(
            names = "--dp",
            paramLabel = "N",
            defaultValue = "1",
            description = "Data-parallel ranks. Default: ${DEFAULT-VALUE}.")
    private int ranks;

    @Option(
            names = "--events",
            paramLabel = "ADDRESS",
            description = "ZMQ address of the engine's KV events, of rank 0.")
    private String events;

    @Option(
            names = "--event-rank",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Rank in its events of its rank 0, another one where it serves some of an"
                            + " engine's ranks. Needs --events. Default: ${DEFAULT-VALUE}.")
    private int eventRank;

    @Option(
            names = "--replay",
            paramLabel = "ADDRESS",
            description = "ZMQ address of rank 0's replay socket. Needs --events.")
    private String replay;

    @Option(
            names = "--handoff",
            paramLabel = "PROTOCOL",
            description = "How it hands prompts over: vllm, sglang or trtllm.")
    private String handoff;

    @Option(
            names = "--bootstrap",
            paramLabel = "HOST:PORT",
            description = "Where decode workers meet it. Needs --handoff.")
    private String bootstrap;

    @Option(
            names = "--label",
            paramLabel = "KEY=VALUE",
            description = "Where it is, in your words; may be repeated.")
    private Map<String, String> labels = new LinkedHashMap<>();

    @Option(
            names = "--lora",
            paramLabel = "NAME",
            description = "LoRA adapter that it serves; may be repeated.")
    private List<String> adapters = List.of();

    @Option(
            names = "--lora-id",
            paramLabel = "NAME=N",
            description =
                    "Number by which its events name an adapter, where they say no name; may be"
                            + " repeated.")
    private Map<String, Long> adapterNumbers = new LinkedHashMap<>();

    @Option(
            names = "--taint",
            paramLabel = "NAME",
            description = "Keeps requests away that do not tolerate it; may be repeated.")
    private List<String> taints = List.of();

    @ArgGroup(multiplicity = "1")
    private Target target;

    /** Where to register. */
    static final class Target {
        @Option(
                names = "--nats",
                paramLabel = "URLS",
                description = "In a bucket of NATS; several servers with commas between.")
        private String nats;

        @Option(
                names = "--etcd",
                paramLabel = "URLS",
                converter = Converters.Url.class,
                split = ",",
                description = "In etcd; several servers with commas between.")
        private List<URI> etcd;

        @Option(
                names = "--kubernetes",
                paramLabel = "NAMESPACE",
                description =
                        "In custom resources of a namespace of Kubernetes, owned by the pod that"
                                + " POD_NAME and POD_UID of the environment name, if they do.")
        private String kubernetes;
    }

    @Option(
            names = "--kubernetes-server",
            paramLabel = "URL",
            converter = Converters.Url.class,
            description =
                    "API server. Default: that of the pod's environment (KUBERNETES_SERVICE_HOST"
                            + " and _PORT).")
    private URI kubernetesServer;

    @Option(
            names = "--kubernetes-account",
            paramLabel = "DIR",
            defaultValue = KubernetesAccess.ACCOUNT,
            description =
                    "Folder with token and ca.crt of the service account. Default:"
                            + " ${DEFAULT-VALUE}.")
    private Path kubernetesAccount;

    @Option(
            names = "--bucket",
            paramLabel = "NAME",
            defaultValue = NatsStore.BUCKET,
            description = "Bucket of NATS. Default: ${DEFAULT-VALUE}.")
    private String bucket;

    @Option(
            names = "--prefix",
            paramLabel = "KEY",
            defaultValue = EtcdStore.PREFIX,
            description = "Prefix of keys in etcd. Default: ${DEFAULT-VALUE}.")
    private String prefix;

    @Option(
            names = "--ttl-ms",
            paramLabel = "MS",
            defaultValue = "10000",
            description =
                    "Lease: the registration ends so long after this process is killed, 1000 to"
                            + " 3600000. In NATS that is the TTL of the bucket: one that is there"
                            + " keeps the TTL that it was made with (by a gateway 30000); with"
                            + " this option a warning says so. Default: ${DEFAULT-VALUE}.")
    private long ttlMs;

    @Option(
            names = "--drain-ms",
            paramLabel = "MS",
            defaultValue = "5000",
            description =
                    "Time between the word that it drains and its removal, when this ends. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long drainMs;

    private Registrar registrar;
    private WatchedRegistration watched;

    @Override
    public Integer call() throws InterruptedException {
        final Registration described = described();
        final Shutdown shutdown = Shutdown.of(this::end);
        try (BoundedClient engine = new BoundedClient(described.url(), null, TIMEOUT, MOST_BYTES)) {
            begin(described, engine);
            if (watched.run()) {
                registrar.close();
                throw new CommandFailure(
                        "a newer run of " + described.id() + " has taken its place");
            }
        }
        return shutdown.await();
    }

    private Registration described() {
        if (replay != null && events == null) {
            throw common.wrong("--replay needs --events");
        }
        if (common.isGiven("--event-rank") && events == null) {
            throw common.wrong("--event-rank needs --events");
        }
        if (bootstrap != null && handoff == null) {
            throw common.wrong("--bootstrap needs --handoff");
        }
        common.notBlank("--model", model);
        common.within("--ttl-ms", ttlMs, LeaseTtl.LEAST.toMillis(), LeaseTtl.MOST.toMillis());
        common.atLeast("--drain-ms", drainMs, 0);
        OF_STORES.forEach(this::checkStore);
        if (target.nats != null) {
            natsAccess.check(common, target.nats);
        }
        if (target.etcd != null) {
            common.checked("--etcd: ", () -> etcdAccess.check(target.etcd));
        }
        try {
            final Registration.Builder builder =
                    Registration.builder(
                                    new InstanceId(namespace, component, endpoint, name),
                                    model,
                                    BoundedClient.withoutSlash(url))
                            .role(role)
                            .input(input)
                            .dpRanks(ranks)
                            .blockSize(blockSize)
                            .labels(labels)
                            .adapters(
                                    new Registration.Adapters(
                                            new LinkedHashSet<>(adapters), adapterNumbers))
                            .taints(new LinkedHashSet<>(taints));
            if (events != null) {
                builder.events(
                        new Registration.Events(events, replay, false, "", "auto", eventRank));
            }
            if (handoff != null) {
                builder.handoff(new Registration.Handoff(handoff, bootstrap));
            }
            final Registration described = builder.build();
            WorkerStores.check(described);
            return described;
        } catch (IllegalArgumentException e) {
            throw common.wrong(e.getMessage());
        }
    }

    private void checkStore(String store, List<String> options) {
        for (String option : options) {
            if (common.isGiven(option) && !common.isGiven(store)) {
                throw common.wrong(option + " needs " + store + ": other stores do without it");
            }
        }
    }

    private synchronized void begin(Registration described, BoundedClient engine) {
        final LeasedStore store = store();
        registrar = new Registrar(store, new Renewals());
        final Reports reports = new Reports(described.url(), store);
        watched =
                new WatchedRegistration(
                        registrar, described, () -> answers(engine, reports), PERIOD, reports);
    }

    private LeasedStore store() {
        try {
            final Duration ttl = Duration.ofMillis(ttlMs);
            if (target.kubernetes != null) {
                return new KubernetesStore(
                        KubernetesAccess.of(kubernetesServer, kubernetesAccount, target.kubernetes),
                        ttl,
                        podOrNull());
            }
            return target.nats != null
                    ? new NatsStore(natsAccess.access(target.nats), bucket, ttl)
                    : new EtcdStore(etcdAccess.access(target.etcd, ttl), prefix);
        } catch (IOException | IllegalArgumentException | RegistryException e) {
            throw new CommandFailure("cannot register: " + e.getMessage(), e);
        }
    }

    /** The pod that this runs in, where its manifest says so. */
    private static OwnerPod podOrNull() {
        final String pod = System.getenv("POD_NAME");
        final String uid = System.getenv("POD_UID");
        return pod == null || uid == null ? null : new OwnerPod(pod, uid);
    }

    private static boolean answers(BoundedClient engine, Reports reports) {
        try {
            final String fault = HealthAnswer.faultOrNull(engine.get("/health").statusCode());
            if (fault != null) {
                reports.unanswered(reports.engine + "/health " + fault);
            }
            return fault == null;
        } catch (IOException e) {
            reports.unanswered(e.getMessage());
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Says what happens, a line each. */
    private final class Reports implements WatchedRegistration.Listener {
        private final URI engine;
        private final LeasedStore store;
        private long saidTtlMs = ttlMs;
        private String reason = ""; // of the last question without an answer
        private String refusal = "";
        private boolean isRegistered;

        private Reports(URI engine, LeasedStore store) {
            this.engine = engine;
            this.store = store;
        }

        /** A question had no answer, or one that is a fault. */
        void unanswered(String why) {
            reason = why;
            if (!isRegistered) {
                refuse(why);
            }
        }

        @Override
        public void registered(Registration described) {
            refusal = "";
            isRegistered = true;
            warnOfAnotherTtl();
            say("registered " + described.id() + " generation " + described.generation());
        }

        /** Of a bucket of NATS, which keeps its own; the other stores take what they are given. */
        private void warnOfAnotherTtl() {
            final long keptMs = store.ttl().toMillis();
            if (common.isGiven("--ttl-ms") && keptMs != saidTtlMs) { // not with each registration
                saidTtlMs = keptMs;
                common.err()
                        .println(
                                "warning: --ttl-ms "
                                        + ttlMs
                                        + " has no effect: bucket "
                                        + bucket
                                        + " of NATS was made with a TTL of "
                                        + keptMs
                                        + " ms, so long after this process is killed the"
                                        + " registration ends; for all in the bucket it is changed"
                                        + " by: nats stream edit KV_"
                                        + bucket
                                        + " --max-age "
                                        + ttlMs
                                        + "ms");
                common.err().flush();
            }
        }

        @Override
        public void lost() {
            isRegistered = false;
            refusal = reason; // it is said here
            say("taken back: " + reason);
        }

        @Override
        public void refused(RegistryException cause) {
            refuse(cause.getMessage());
        }

        private void refuse(String why) {
            if (!refusal.equals(why)) { // not every second
                refusal = why;
                say("not registered yet: " + why);
            }
        }
    }

    /** Says what becomes of the registration in the store, a line each. */
    private final class Renewals implements Registrar.Listener {
        @Override
        public void notRenewed(RegistryException cause) {
            say("not renewed: " + cause.getMessage());
        }

        @Override
        public void lapsed(Duration ttl) {
            say("lapsed: not renewed for " + ttl.toMillis() + " ms; gateways drop it until it is");
        }

        @Override
        public void renewed(boolean lapsed) {
            say(lapsed ? "renewed, after it had lapsed" : "renewed");
        }

        @Override
        public void notRemoved(InstanceId id, RegistryException cause) {
            say("not removed, ends with its lease: " + cause.getMessage());
        }
    }

    private void say(String line) {
        common.out().println(line);
        common.out().flush();
    }

    /** Drains and takes the registration back, on the thread that ends the process. */
    private synchronized void end() {
        if (registrar == null) {
            return;
        }
        watched.drain();
        try {
            Thread.sleep(drainMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        watched.close();
        registrar.close();
    }
}
