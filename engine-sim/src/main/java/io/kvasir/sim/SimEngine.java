package io.kvasir.sim;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.KvHold;
import io.kvasir.sim.batch.SidePort;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.SimClock;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.events.EventSockets;
import io.kvasir.sim.faults.SimFaults;
import io.kvasir.sim.http.Handoff;
import io.kvasir.sim.http.SimServer;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.state.SimState;

import java.io.IOException;
import java.net.URI;
import java.util.Map;

/**
 * A simulated engine: an OpenAI server that caches, schedules and announces blocks as vLLM V1 does.
 *
 * <p>Routes: {@code POST /v1/completions}, {@code POST /v1/chat/completions}, {@code GET
 * /v1/models}, {@code GET /health}, {@code GET /metrics}, {@code POST /tokenize}, {@code POST
 * /detokenize}, {@code POST /reset_prefix_cache}, {@code POST /sim/faults}, {@code GET /sim/state}
 * ({@code ?blocks=true} lists what each rank holds). Header {@code X-data-parallel-rank} pins a
 * rank. Every completion says in {@code x-sim-event-sequence} which event message has the last
 * change of the cache before its prefix was looked up, -1 when there was none; a change of the same
 * step goes out after the look.
 *
 * <p>Token ids need not be in the model's vocabulary. All methods: any thread.
 */
public final class SimEngine implements AutoCloseable {
    private final SimConfig config;
    private final StepLoop loop;
    private final SimFaults faults;
    private final SimServer server;
    private final SidePort sidePort;

    private SimEngine(SimConfig config, SimClock clock) {
        this.config = config;
        final InjectedFaults injected = new InjectedFaults(config.handoff());
        this.loop = new StepLoop(config, clock, injected);
        this.sidePort =
                config.handoff().role() == SimRole.PREFILL ? new SidePort(config, loop) : null;
        this.faults = new SimFaults(loop, injected, sidePort);
        this.server =
                new SimServer(
                        config,
                        loop,
                        faults,
                        injected,
                        Handoff.of(config, loop, injected, this::sidePort));
    }

    /**
     * Starts an engine; it serves when this returns.
     *
     * @param config what it is
     * @return the running engine
     * @throws IllegalStateException when a port cannot be bound
     */
    public static SimEngine start(SimConfig config) {
        return start(config, SimClock.system());
    }

    /**
     * Starts an engine that computes in the time of a clock; it serves when this returns.
     *
     * @param config what it is
     * @param clock of its steps, its stalls and the stamps of its messages; sockets are as fast as
     *     the machine
     * @return the running engine
     * @throws IllegalStateException when a port cannot be bound
     */
    public static SimEngine start(SimConfig config, SimClock clock) {
        final SimEngine engine = new SimEngine(config, clock);
        engine.loop.start();
        engine.openSidePort();
        try {
            engine.server.start();
        } catch (Exception e) {
            engine.close();
            throw new IllegalStateException(
                    "cannot serve HTTP on "
                            + HostPort.of(config.host(), config.port())
                            + ": "
                            + FailureText.of(e),
                    e);
        }
        return engine;
    }

    private void openSidePort() {
        if (sidePort == null) {
            return;
        }
        try {
            sidePort.open();
        } catch (IOException e) {
            close();
            throw new IllegalStateException(
                    "cannot bind the side port "
                            + HostPort.of(config.host(), config.handoff().sidePort())
                            + ": "
                            + FailureText.of(e),
                    e);
        }
    }

    /**
     * Returns the configuration it was started with.
     *
     * @return the configuration
     */
    public SimConfig config() {
        return config;
    }

    /**
     * Returns the HTTP port.
     *
     * @return the bound port, also when any was asked for
     */
    public int port() {
        return server.port();
    }

    /**
     * Returns where HTTP is served.
     *
     * @return {@code http://host:port}
     */
    public URI url() {
        return URI.create("http://" + HostPort.of(config.reachableHost(), port()));
    }

    /**
     * Returns where a rank publishes its events.
     *
     * @param rank data-parallel rank
     * @return a ZMQ endpoint to connect a SUB socket to
     * @throws IllegalStateException if the engine publishes none
     */
    public String eventsEndpoint(int rank) {
        return endpoint("events", loop.ports().events(rank));
    }

    /**
     * Returns where a rank replays its events.
     *
     * @param rank data-parallel rank
     * @return a ZMQ endpoint to connect a DEALER socket to
     * @throws IllegalStateException if the engine offers no replay
     */
    public String replayEndpoint(int rank) {
        return endpoint("replay", loop.ports().replay(rank));
    }

    /**
     * Returns where decode engines pull blocks; for SGLang this is the bootstrap port.
     *
     * @return the bound port, also when any was asked for
     * @throws IllegalStateException if this is no prefill engine
     */
    public int sidePort() {
        if (sidePort == null) {
            throw new IllegalStateException("no side port; only prefill engines have one");
        }
        return sidePort.port();
    }

    /**
     * Names the present life of a rank as prefills name it to decodes, {@code remote_engine_id}.
     *
     * @param rank data-parallel rank
     * @return another name after each restart
     */
    public String engineId(int rank) {
        return loop.engineId(rank);
    }

    /**
     * Frees a held prefill whose decode does not come, as vLLM does when it is notified with {@code
     * <remote_request_id>:<consumers>}.
     *
     * @param requestId {@code remote_request_id} of the prefill's answer
     * @return false when it was not held any more
     */
    public boolean notifyFreed(String requestId) {
        return loop.ask(() -> loop.free(requestId, KvHold.End.NOTIFIED));
    }

    /**
     * Tells what is true of a rank's hand-offs now.
     *
     * @param rank data-parallel rank
     * @return a snapshot
     */
    public HandoffState handoffs(int rank) {
        return loop.ask(() -> loop.rank(rank).handoffs());
    }

    /** Requests whose blocks are being moved, for tests. */
    int moving(int rank) {
        return loop.ask(() -> loop.rank(rank).movingPulls());
    }

    /**
     * Returns the faults that can be injected.
     *
     * @return the one object for this engine
     */
    public SimFaults faults() {
        return faults;
    }

    /**
     * Tells what is true of a rank now.
     *
     * @param rank data-parallel rank
     * @return a snapshot
     */
    public SimState state(int rank) {
        return loop.ask(() -> loop.rank(rank).state());
    }

    /**
     * Tells which blocks a rank could serve a hit from now.
     *
     * @param rank data-parallel rank
     * @return physical copies per block name, names as in events (unsigned 64-bit)
     */
    public Map<Long, Integer> heldBlocks(int rank) {
        return loop.ask(() -> loop.rank(rank).heldBlocks());
    }

    /** Stops serving; requests in flight are cut. Safe to call twice. */
    @Override
    public void close() {
        try {
            server.stop();
        } catch (Exception e) {
            throw new IllegalStateException("cannot stop HTTP on port " + config.port(), e);
        } finally {
            if (sidePort != null) {
                sidePort.close();
            }
            loop.close();
        }
    }

    private String endpoint(String what, int port) {
        if (port == EventSockets.DISABLED) {
            throw new IllegalStateException(
                    "no " + what + " socket; set " + what + "Port to 0 or a port");
        }
        return "tcp://" + HostPort.of(config.reachableHost(), port);
    }
}
