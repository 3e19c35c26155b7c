package io.kvasir.cli.cluster;

import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import java.io.IOException;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** A simulated engine and the relay beside it, run on their own until they are killed. */
final class EngineProcess {
    static final int BLOCK = 16;
    static final EventSubjects EVENTS = EventSubjects.kvEvents("dynamo", "backend", null);

    private static final int BLOCKS = 512;
    private static final int SERVERS = 3;
    private static final long PAUSE_MS = 100;

    private EngineProcess() {}

    /** Port of the first of three, addresses of NATS, number of the worker. */
    public static void main(String[] args) throws Exception {
        final int port = Integer.parseInt(args[0]);
        final SimEngine engine =
                SimEngine.start(
                        SimConfig.builder()
                                .model("m")
                                .port(port)
                                .eventsPort(port + 1)
                                .replayPort(port + 2)
                                .blockSize(BLOCK)
                                .blocks(BLOCKS)
                                .prefillTokensPerSecond(200_000)
                                .interTokenMillis(20)
                                .seed(port) // names of blocks are the same in each life
                                .build());
        final ZmqKvEventPublisher relay =
                new ZmqKvEventPublisher(
                        SourceConfig.of("e", 0, BLOCK, engine.eventsEndpoint(0))
                                .withReplayEndpoint(engine.replayEndpoint(0)),
                        ZmqConfig.defaults(),
                        Long.parseLong(args[2]),
                        transport(args[1], Long.parseLong(args[2])));
        Child.serve(
                _ ->
                        relay.problem().isEmpty()
                                ? new TreeSet<>(engine.heldBlocks(0).keySet())
                                        .stream()
                                                .map(String::valueOf)
                                                .collect(Collectors.joining(","))
                                : relay.problem());
    }

    /** Every second one publishes single events, the others envelopes. */
    private static RouterEventTransport transport(String nats, long worker)
            throws InterruptedException {
        while (true) {
            try {
                return new JetStreamEventTransport(
                        NatsAccess.of(nats),
                        EVENTS,
                        worker % 2 == 0 ? StreamForm.EVENTS : StreamForm.ENVELOPES,
                        SERVERS);
            } catch (IOException e) {
                Thread.sleep(PAUSE_MS); // it may be down for now
            }
        }
    }
}
