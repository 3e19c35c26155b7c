package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Shutdown;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.LocalIndexerService;
import io.kvasir.nats.events.NatsEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.publish.ZmqEventPlaneTransport;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.pipeline.source.ZmqAddress;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.pipeline.wire.LoraNumbers;

import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.security.SecureRandom;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** {@code kvasir relay}: an engine's events from ZMQ to an event plane. */
@Command(
        name = "relay",
        description = {
            "Relay an engine's KV events from ZMQ to an event plane.",
            "",
            "Reads the engine's batches, asks its replay socket for what is missing, and publishes"
                + " router events: over core NATS, to the stream of JetStream that older routers"
                + " read, or over ZMQ. What is lost before the relay is a gap for readers, a"
                + " restart of the engine is a clear, and what cannot be published is tried again."
                + " Over core NATS and ZMQ, which keep nothing, it answers routers that have missed"
                + " something.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir relay --engine tcp://127.0.0.1:5557 --replay tcp://127.0.0.1:5558 \\",
            "    --block-size 16 --nats nats://nats:4222 --worker-id 7",
            "  kvasir relay --engine tcp://127.0.0.1:5557 --block-size 16 --bind tcp://*:6557",
            "  kvasir relay --engine tcp://127.0.0.1:5557 --block-size 16 --worker-id 7 \\",
            "    --connect tcp://broker-0:5555,tcp://broker-1:5555",
            "",
            "Exit codes: 2 wrong command line; 3 could not start (no NATS, address in use, bad"
                    + " file); 130/143 ended by ctrl-C/kill."
        })
public final class RelayCommand implements Callable<Integer> {
    private static final int WORKER_ID_BITS = 53;
    private static final int MOST_REPLICAS = 5;

    @Mixin private CommonOptions common;

    @Option(
            names = "--engine",
            paramLabel = "ADDRESS",
            required = true,
            description = "The engine's ZMQ publisher, such as tcp://127.0.0.1:5557.")
    private String engine;

    @Option(
            names = "--replay",
            paramLabel = "ADDRESS",
            description = "The engine's ZMQ replay socket. Default: none.")
    private String replay;

    @Option(
            names = "--topic",
            paramLabel = "PREFIX",
            defaultValue = "",
            description = "Topics of the engine to read. Default: all.")
    private String topic;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            required = true,
            description = "The engine's tokens per block.")
    private int blockSize;

    @Option(
            names = "--dp-rank",
            paramLabel = "N",
            defaultValue = "0",
            description = "The engine's data-parallel rank. Default: ${DEFAULT-VALUE}.")
    private int dpRank;

    @Option(
            names = "--lora-ids",
            paramLabel = "NAME:N",
            defaultValue = "",
            description =
                    "Names of LoRA adapters by the numbers in the engine's events, with semicolons"
                            + " between; for engines that say a number alone. Default: none.")
    private String loraIds;

    @Option(
            names = "--worker-id",
            paramLabel = "N",
            description =
                    "The worker in the published events, 64 unsigned bits. Default: a random one.")
    private String workerId;

    @ArgGroup(multiplicity = "1")
    private Target target;

    /** Where to publish. */
    static final class Target {
        @Option(
                names = "--nats",
                paramLabel = "URLS",
                description = "Publish over NATS; several servers with commas between.")
        private String nats;

        @Option(
                names = "--bind",
                paramLabel = "ADDRESS",
                description = "Publish over ZMQ at this address, such as tcp://*:6557.")
        private String bind;

        @Option(
                names = "--connect",
                paramLabel = "ADDRESSES",
                split = ",",
                description =
                        "Publish over ZMQ to these brokers, such as tcp://broker:5555; several with"
                                + " commas between.")
        private List<String> brokers;
    }

    @Option(
            names = "--namespace",
            paramLabel = "NAME",
            defaultValue = "dynamo",
            description = "Namespace of the worker on NATS. Default: ${DEFAULT-VALUE}.")
    private String namespace;

    @Option(
            names = "--component",
            paramLabel = "NAME",
            defaultValue = "backend",
            description = "Component of the worker on NATS. Default: ${DEFAULT-VALUE}.")
    private String component;

    @Option(
            names = "--endpoint",
            paramLabel = "NAME",
            defaultValue = "generate",
            description =
                    "Endpoint of the worker on NATS; empty = the component's own subject. Default:"
                            + " ${DEFAULT-VALUE}.")
    private String endpoint;

    @Option(
            names = "--jetstream",
            description = "Publish to the component's stream, which keeps events for an hour.")
    private boolean jetStream;

    @Option(
            names = "--envelopes",
            description =
                    "In the stream, one message for all events of a batch; routers that read single"
                            + " events do not know it.")
    private boolean envelopes;

    @Option(
            names = "--stream-replicas",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Servers of a cluster that keep the stream, 1..5, where it is made here."
                            + " Default: ${DEFAULT-VALUE}.")
    private int streamReplicas;

    @Option(
            names = "--old-subject",
            description = "In the stream, the subject that routers up to 0.7 read.")
    private boolean oldSubject;

    @Option(
            names = "--local-indexer",
            negatable = true,
            defaultValue = "true",
            fallbackValue = "true",
            description =
                    "Over core NATS and ZMQ, remember what was published and answer routers that"
                            + " have missed some of it, or come late. Default: ${DEFAULT-VALUE}.")
    private boolean localIndexer;

    @Option(
            names = "--local-indexer-blocks",
            paramLabel = "N",
            defaultValue = "" + LocalIndexer.BLOCKS,
            description =
                    "Most blocks that are remembered, 64 to 116 bytes of heap each: at least those"
                            + " of the engine's cache. Default: ${DEFAULT-VALUE}.")
    private int localIndexerBlocks;

    @Mixin private NatsOptions nats;

    private final AtomicReference<LocalIndexerService> answering = new AtomicReference<>();
    private final AtomicReference<ZmqKvEventPublisher> running = new AtomicReference<>();

    @Override
    public Integer call() throws InterruptedException {
        if (blockSize < 1) {
            throw common.wrong("--block-size " + blockSize + " is not a positive number");
        }
        if (dpRank < 0) {
            throw common.wrong("--dp-rank " + dpRank + " is negative");
        }
        for (String option : List.of("--credentials", "--trust-store", "--key-store")) {
            if (target.nats == null && common.isGiven(option)) {
                throw common.wrong(option + " needs --nats: ZMQ does without it");
            }
        }
        if (target.nats == null && (jetStream || oldSubject)) {
            throw common.wrong("--jetstream and --old-subject need --nats");
        }
        if (envelopes && (!jetStream || oldSubject)) {
            throw common.wrong("--envelopes needs --jetstream, without --old-subject");
        }
        if (!jetStream && common.isGiven("--stream-replicas")) {
            throw common.wrong("--stream-replicas needs --jetstream");
        }
        if (streamReplicas < 1 || streamReplicas > MOST_REPLICAS) {
            throw common.wrong(
                    "--stream-replicas " + streamReplicas + " is not within 1.." + MOST_REPLICAS);
        }
        loraNumbers();
        if (common.isGiven("--local-indexer-blocks") && !hasLocalIndexer()) {
            throw common.wrong(
                    "--local-indexer-blocks is for the local indexer, which "
                            + (jetStream ? "--jetstream" : "--no-local-indexer")
                            + " does without");
        }
        if (localIndexerBlocks < 1) {
            throw common.wrong(
                    "--local-indexer-blocks " + localIndexerBlocks + " is not a positive number");
        }
        checkAddresses();
        if (target.nats != null) {
            nats.check(common, target.nats);
        }
        final long worker = worker();
        final Shutdown shutdown = Shutdown.of(this::end);
        final RouterEventTransport transport = transport();
        final LocalIndexer indexerOrNull = indexerOrNull(worker, transport);
        if (indexerOrNull != null) {
            answer(indexerOrNull, transport);
        }
        try {
            running.set(relay(worker, transport, indexerOrNull));
        } catch (IllegalArgumentException e) {
            end();
            throw e;
        }
        warn(transport);
        common.out()
                .println(
                        "relaying "
                                + engine
                                + " to "
                                + where(transport)
                                + " as worker "
                                + Long.toUnsignedString(worker)
                                + "/"
                                + dpRank);
        final LocalIndexerService service = answering.get();
        if (service != null) {
            common.out().println("answering queries at " + service.subject());
        }
        common.out().flush();
        try {
            return shutdown.await();
        } finally {
            end();
        }
    }

    /** A stream that others have made may take events and lose them to those who read it. */
    private void warn(RouterEventTransport transport) {
        if (transport instanceof JetStreamEventTransport stream && !stream.problem().isEmpty()) {
            common.err().println("warning: events may be missing: " + stream.problem());
            common.err().flush();
        }
    }

    private void checkAddresses() {
        check("--engine", engine, ZmqAddress::checkConnectable);
        if (replay != null) {
            check("--replay", replay, ZmqAddress::checkConnectable);
        }
        if (target.bind != null) {
            check("--bind", target.bind, ZmqAddress::checkBindable);
        }
        if (target.brokers != null) {
            target.brokers.forEach(
                    broker -> check("--connect", broker, ZmqAddress::checkConnectable));
        }
    }

    private void check(String option, String address, Consumer<String> check) {
        common.checked(option + ": ", () -> check.accept(address));
    }

    private Map<Long, String> loraNumbers() {
        return common.made("--lora-ids ", () -> LoraNumbers.parse(loraIds));
    }

    private long worker() {
        if (workerId == null) {
            return new SecureRandom().nextLong() >>> (Long.SIZE - WORKER_ID_BITS);
        }
        try {
            return Long.parseUnsignedLong(workerId);
        } catch (NumberFormatException e) {
            throw common.wrong("--worker-id " + workerId + " is not a number of 64 bits");
        }
    }

    private RouterEventTransport transport() {
        try {
            if (target.bind != null) {
                return new ZmqEventPlaneTransport(target.bind, EventSubjects.KV_EVENTS);
            }
            if (target.brokers != null) {
                return ZmqEventPlaneTransport.toBrokers(
                        target.brokers, names().subject(), EventSubjects.KV_EVENTS);
            }
            final NatsAccess access = nats.access(target.nats);
            return jetStream
                    ? new JetStreamEventTransport(access, names(), form(), streamReplicas)
                    : new NatsEventTransport(access, names());
        } catch (IOException e) {
            throw new CommandFailure("cannot publish: " + e.getMessage(), e);
        }
    }

    private boolean hasLocalIndexer() {
        return localIndexer && !jetStream;
    }

    /** What remembers the published events; null where nothing does. */
    private LocalIndexer indexerOrNull(long worker, RouterEventTransport transport) {
        return hasLocalIndexer()
                ? new LocalIndexer(
                        worker,
                        dpRank,
                        transport.publisherId(),
                        LocalIndexer.EVENTS,
                        LocalIndexer.EVENT_BYTES,
                        localIndexerBlocks)
                : null;
    }

    private void answer(LocalIndexer indexer, RouterEventTransport transport) {
        if (transport instanceof ZmqEventPlaneTransport zmq) {
            zmq.answerBy(indexer); // over the connections of the events
            return;
        }
        try {
            answering.set(new LocalIndexerService(nats.access(target.nats), names(), indexer));
        } catch (IOException e) {
            transport.close();
            throw new CommandFailure("cannot answer queries: " + e.getMessage(), e);
        }
    }

    private ZmqKvEventPublisher relay(
            long worker, RouterEventTransport transport, LocalIndexer indexerOrNull) {
        final SourceConfig source =
                SourceConfig.of("engine", 0, blockSize, engine)
                        .withLoraNumbers(loraNumbers())
                        .withDpRank(dpRank)
                        .withReplayEndpoint(replay)
                        .withTopic(topic);
        return indexerOrNull == null
                ? new ZmqKvEventPublisher(source, ZmqConfig.defaults(), worker, transport)
                : new ZmqKvEventPublisher(source, ZmqConfig.defaults(), transport, indexerOrNull);
    }

    private StreamForm form() {
        if (envelopes) {
            return StreamForm.ENVELOPES;
        }
        return oldSubject ? StreamForm.OLD_EVENTS : StreamForm.EVENTS;
    }

    private EventSubjects names() {
        return EventSubjects.kvEvents(namespace, component, endpoint.isEmpty() ? null : endpoint);
    }

    private String where(RouterEventTransport transport) {
        if (transport instanceof ZmqEventPlaneTransport zmq) {
            return zmq.endpoint();
        }
        return NatsAccess.of(target.nats).address()
                + " "
                + (jetStream ? "stream " + names().stream() : names().subject());
    }

    private void end() {
        final LocalIndexerService service = answering.getAndSet(null);
        if (service != null) {
            service.close();
        }
        final ZmqKvEventPublisher relay = running.getAndSet(null);
        if (relay == null) {
            return;
        }
        final SourceStatus engineStatus = relay.status();
        relay.close();
        final PrintWriter out = common.out();
        out.println(
                "published "
                        + relay.publishedEvents()
                        + " events of "
                        + engineStatus.messages()
                        + " messages, lost "
                        + engineStatus.lostMessages()
                        + ", tried again "
                        + relay.failedTries()
                        + (relay.lostEvents() == 0
                                ? ""
                                : ", too long to publish " + relay.lostEvents()));
        if (!engineStatus.problem().isEmpty()) {
            out.println("problem: " + engineStatus.problem());
        }
        out.flush();
    }
}
