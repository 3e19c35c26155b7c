package io.kvasir.gateway;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.HeapLimits;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.discovery.Discoveries;
import io.kvasir.gateway.log.AccessLogs;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.metrics.GatewayActivity;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.metrics.SettingsCounts;
import io.kvasir.gateway.proxy.PredictionFeedback;
import io.kvasir.gateway.proxy.ProxyContext;
import io.kvasir.gateway.proxy.ProxyExchange;
import io.kvasir.gateway.proxy.SplitContext;
import io.kvasir.gateway.routing.DecisionLog;
import io.kvasir.gateway.routing.PromptExecutor;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.server.AdmissionGate;
import io.kvasir.gateway.server.AnswerMemory;
import io.kvasir.gateway.server.ClientCap;
import io.kvasir.gateway.server.ClosableConnector;
import io.kvasir.gateway.server.CompletedRequests;
import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.server.Connectors;
import io.kvasir.gateway.server.CrossOrigin;
import io.kvasir.gateway.server.Http2ConnectionFactory;
import io.kvasir.gateway.server.Ports;
import io.kvasir.gateway.server.ResponseCoding;
import io.kvasir.gateway.server.TrustedCallers;
import io.kvasir.gateway.trace.Tracing;
import io.kvasir.gateway.upstream.AdminDiscovery;
import io.kvasir.gateway.upstream.Descriptors;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.EtcdStores;
import io.kvasir.gateway.upstream.FileDiscovery;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.HealthProbe;
import io.kvasir.gateway.upstream.InterimResponses;
import io.kvasir.gateway.upstream.LoadPoll;
import io.kvasir.gateway.upstream.NatsAccesses;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.StaleConnectionDetector;
import io.kvasir.gateway.upstream.StaticDiscovery;
import io.kvasir.gateway.upstream.TrustStore;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.UpstreamTransport;
import io.kvasir.gateway.upstream.WorkerConnector;
import io.kvasir.gateway.upstream.WorkerKey;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.registry.FailureText;
import io.kvasir.router.KvRouter;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.RouterSettings;

import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.http.HttpCookieStore;
import org.eclipse.jetty.io.ByteBufferPool;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.GracefulHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.net.BindException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A running gateway: a serving port, an admin port, the models of its configuration with a router
 * for each pool of their workers, and these workers. Several live side by side in one process. All
 * methods may be called by any thread.
 */
public final class GatewayServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GatewayServer.class);

    /**
     * Engines behind uvicorn close connections that were idle for 5 s; the gateway lets go of them
     * first.
     */
    private static final long POOLED_IDLE_MS = 4_000;

    /** When the client forgets a worker that nothing is asked any more. */
    private static final long FORGOTTEN_AFTER_MS = 10_000;

    private static final int READ_BUFFER_BYTES = 4096;
    private static final int ACCEPT_QUEUE = 1024;
    private static final int MAX_IO_THREADS = 64;

    /** How long what is cut may take to be written. */
    private static final Duration CUT_TIME = Duration.ofSeconds(2);

    private static final long DRAIN_POLL_MS = 5;
    private static final long SETTLE_NS = 1_000_000_000L;

    /** How long a client's answer may take to a connection that the system has granted it. */
    private static final Duration HANDSHAKES = Duration.ofMillis(250);

    private static final long LEASE_WAIT_NS = 2_000_000_000L;
    private static final long INDEX_LOAD_LIMIT_NS = 10_000_000_000L;

    private final GatewayConfig config;
    private final CountDownLatch closing = new CountDownLatch(1);
    private volatile int port; // as of the start; likewise the next
    private volatile int adminPort;
    private final ServedModels models;
    private final BlockRelease release;
    private final Encoders encoders;
    private final PromptExecutor executor;
    private final WorkerConnector connections = new WorkerConnector();
    private final HttpClient client;
    private final Server server;
    private final ClosableConnector connector;
    private final ConnectionCap cap;
    private final long freeDescriptors = Descriptors.free(); // before there are workers
    private final Fleet fleet;
    private final List<Discovery> discoveries = new ArrayList<>();
    private final AdminDiscovery byAdmin = new AdminDiscovery();
    private final BearerTokens adminTokens;
    private final TrustedCallers trusted;
    private final WorkerKey workerKey;
    private final TrustStore trustStore;
    private final AccessLogs accessLogs;
    private final LiveSettings settings;
    private final Tracing tracing;
    private final AnswerMemory answers = new AnswerMemory(this::maxBodyBytesInFlight);
    private final Set<ProxyExchange> running = ConcurrentHashMap.newKeySet();
    private final AdminServer admin;
    private final GracefulHandler requests = new GracefulHandler();
    private final GatewayHandler handler;
    private final Readiness readiness;
    private final StatusEndpoints endpoints;

    private GatewayServer(GatewayConfig given, Encoders encoders, BlockRelease release) {
        config = given.running();
        this.encoders = encoders;
        this.release = release;
        // what may be wrong in files comes first: nothing has to be given back then
        trusted = new TrustedCallers(config);
        workerKey = new WorkerKey(config);
        trustStore = new TrustStore(config);
        adminTokens = StartFiles.adminTokens(config);
        accessLogs = new AccessLogs(config);
        tracing = new Tracing(config);
        final List<Discovery> outside = Discoveries.of(config);
        this.executor = newExecutor();
        final QueuedThreadPool threads = new QueuedThreadPool(MAX_IO_THREADS, 4);
        threads.setName("kvasir-http");
        threads.setVirtualThreadsExecutor(
                Executors.newThreadPerTaskExecutor(
                        Thread.ofVirtual().name("kvasir-request-", 0).factory()));
        server = new Server(threads);
        connector = newConnector();
        client = newClient(threads);
        final DecisionLog decisions =
                new DecisionLog(config.get(GatewaySettings.DECISION_LOG_SIZE));
        final GatewayMetrics metrics = new GatewayMetrics();
        final StaleConnectionDetector staleConnections = new StaleConnectionDetector();
        models = models(decisions, metrics, staleConnections);
        fleet = new Fleet(models.all().stream().map(ServedModel::registry).toList());
        metrics.watch(fleet);
        discoveries.add(new StaticDiscovery(config));
        if (config.get(GatewaySettings.WORKERS_FILE) != null) {
            discoveries.add(
                    new FileDiscovery(
                            config.get(GatewaySettings.WORKERS_FILE),
                            config.get(GatewaySettings.MODEL),
                            config.get(GatewaySettings.WORKERS_FILE_INTERVAL)));
        }
        discoveries.addAll(outside);
        discoveries.add(byAdmin);
        metrics.watch(release);
        metrics.watch(tracing.counts());
        final SettingsCounts changes = new SettingsCounts();
        metrics.watch(changes);
        settings = new LiveSettings(config, changes);
        takers().forEach(settings::add);
        if (encoders.memoCountsOrNull() != null) {
            metrics.watchMemo(encoders::memoCountsOrNull);
        }
        final AdmissionGate gate = newGate();
        metrics.watch(() -> activity(gate));
        readiness = new Readiness(fleet.registries(), INDEX_LOAD_LIMIT_NS);
        endpoints = new StatusEndpoints(models, fleet, Clock.systemUTC().instant());
        server.setErrorHandler(GatewayHandler::serverError);
        cap = newCap();
        server.setRequestLog(new CompletedRequests(metrics, accessLogs));
        server.setHandler(
                CrossOrigin.around(
                        new StatusHandler(
                                readiness,
                                true,
                                cap,
                                threads.getVirtualThreadsExecutor(),
                                requests),
                        config));
        handler = new GatewayHandler(models, gate, executor, endpoints, tracing);
        requests.setHandler(handler);
        admin =
                new AdminServer(
                        config,
                        readiness,
                        new AdminHandler(
                                adminTokens,
                                metrics,
                                decisions,
                                readiness,
                                endpoints,
                                new WorkersApi(config, fleet, byAdmin, endpoints),
                                new SettingsApi(settings, models)));
    }

    /** What does not read its settings whenever it needs them; what may fail to open comes last. */
    private List<SettingsTaker> takers() {
        final List<SettingsTaker> all = new ArrayList<>();
        for (int i = 0; i < models.all().size(); i++) {
            all.add(models.all().get(i).taker(i));
        }
        all.add(_ -> connections.setConnectTimeout(config.get(GatewaySettings.CONNECT_TIMEOUT)));
        all.add(_ -> tracing.settingsChanged());
        all.add(
                new SettingsTaker() {
                    @Override
                    public void check(GatewayConfig wanted) {
                        accessLogs.check(wanted);
                    }

                    @Override
                    public void take(long version) {
                        accessLogs.settingsChanged();
                    }
                });
        return all;
    }

    /** Makes the routers of every model, or of none, and what goes with them. */
    private ServedModels models(
            DecisionLog decisions,
            GatewayMetrics metrics,
            StaleConnectionDetector staleConnections) {
        final PredictionFeedback feedback = new PredictionFeedback(metrics);
        final ResponseCoding coding = new ResponseCoding(config);
        final List<PoolRouters> routers = PoolRouters.open(config.models());
        final List<ServedModel> all = new ArrayList<>();
        for (GatewayConfig model : config.models()) {
            final ChatModel encoder = encoders.get(all.size());
            final PoolRouters own = routers.get(all.size());
            final UpstreamRegistry registry = new UpstreamRegistry(model, own);
            all.add(
                    new ServedModel(
                            model,
                            own,
                            registry,
                            new PromptReader(
                                    model,
                                    encoder,
                                    registry::maxModelLength,
                                    registry::hasTokensWorkers,
                                    registry::promptRules,
                                    registry::hasAdapter),
                            new HealthProbe(client, staleConnections, workerKey, model, encoder),
                            new LoadPoll(client, workerKey, model),
                            new ProxyContext(
                                    model,
                                    client,
                                    staleConnections,
                                    new WorkerReservations(
                                            registry, decisions, metrics, Clock.systemUTC()),
                                    registry,
                                    metrics,
                                    feedback,
                                    trusted,
                                    workerKey,
                                    coding,
                                    answers,
                                    SplitContext.of(model, client, release),
                                    running)));
        }
        return new ServedModels(all);
    }

    private ClosableConnector newConnector() {
        final ClosableConnector listening =
                Connectors.add(
                        server,
                        config.get(GatewaySettings.HOST),
                        config.get(GatewaySettings.PORT),
                        config);
        listening.setAcceptQueueSize(ACCEPT_QUEUE); // a full one costs clients a second each
        Http2ConnectionFactory.addTo(listening, config);
        return listening;
    }

    private ConnectionCap newCap() {
        final Long most = config.get(GatewaySettings.MAX_CONNECTIONS);
        final int perClient = config.get(GatewaySettings.MAX_CONNECTIONS_PER_CLIENT);
        final ConnectionCap cap =
                new ConnectionCap(
                        connector,
                        most == null
                                ? Descriptors.affordableConnections(freeDescriptors)
                                : most.intValue(),
                        GatewaySettings.MAX_CONNECTIONS.name());
        server.addBean(cap);
        if (perClient > 0) {
            connector.addBean(new ClientCap(perClient));
        }
        return cap;
    }

    private HttpClient newClient(QueuedThreadPool threads) {
        connections.setSelectors(1);
        connections.setExecutor(threads);
        connections.setSslContextFactory(trustStore.client());
        final HttpClient http =
                new HttpClient(
                        UpstreamTransport.of(
                                connections, config.get(GatewaySettings.UPSTREAM_HTTP2)));
        http.setExecutor(threads);
        // This client clears a connection's read buffer after having released it when the
        // connection ends
        // inside a callback (jetty.project#12934 is of that kind): from a pool it may be another
        // connection's by then, whose bytes are lost. Buffers of its own cost an allocation per
        // read.
        http.setByteBufferPool(new ByteBufferPool.NonPooling());
        http.setUseInputDirectByteBuffers(false);
        http.setUseOutputDirectByteBuffers(false);
        http.setResponseBufferSize(READ_BUFFER_BYTES);
        http.setMaxResponseHeadersSize(config.get(GatewaySettings.MAX_HEAD_BYTES));
        http.setMaxRequestHeadersSize(
                config.get(GatewaySettings.MAX_HEAD_BYTES) + Connectors.OWN_HEADERS);
        http.setConnectTimeout(config.get(GatewaySettings.CONNECT_TIMEOUT).toMillis());
        http.setIdleTimeout(POOLED_IDLE_MS);
        http.setDestinationIdleTimeout(FORGOTTEN_AFTER_MS);
        // all bookings may be on one worker, and its probe must not wait for them
        final int bookings =
                config.models().stream()
                        .mapToInt(model -> model.get(RouterSettings.MAX_ACTIVE_REQUESTS))
                        .max()
                        .orElseThrow();
        http.setMaxConnectionsPerDestination(bookings + 1);
        http.setMaxRequestsQueuedPerDestination(bookings + 1);
        http.setFollowRedirects(false);
        http.setUserAgentField(null);
        http.setHttpCookieStore(new HttpCookieStore.Empty());
        server.addBean(http, true);
        return http;
    }

    /**
     * Starts a gateway. Workers that are down at this moment are used once they answer. Also in an
     * interrupted thread, which is interrupted again afterwards.
     *
     * @param config what to serve and where
     * @return the listening gateway
     * @throws GatewayException if it cannot listen, the tokenizer cannot be loaded or there is no
     *     memory for the index; the message names the knob to turn
     * @throws IllegalArgumentException if a value is out of the router's range
     */
    public static GatewayServer start(GatewayConfig config) {
        return Uninterrupted.get(() -> startNow(config));
    }

    private static GatewayServer startNow(GatewayConfig config) {
        Ports.check(config);
        IndexMemory.check(config);
        final Encoders encoders = Encoders.load(config);
        try {
            Descriptors.checkFor(
                    config.get(RouterSettings.MAX_ACTIVE_REQUESTS),
                    config.models().stream()
                            .flatMap(model -> model.get(GatewaySettings.WORKERS).stream())
                            .toList());
            return start(
                    new GatewayServer(config, encoders, BlockRelease.open(config)),
                    () -> WarmUp.run(config, encoders));
        } catch (Throwable t) {
            Closing.after(t, encoders);
            throw t;
        }
    }

    /** Starts a gateway with encoders that it closes as far as they are not the caller's. */
    static GatewayServer startWith(GatewayConfig config, Encoders encoders) {
        return start(new GatewayServer(config, encoders, BlockRelease.open(config)), () -> {});
    }

    /** Starts a gateway that has prefills freed in a way of the caller's; closes it in the end. */
    static GatewayServer startWith(GatewayConfig config, BlockRelease release) {
        return start(new GatewayServer(config, Encoders.load(config), release), () -> {});
    }

    /**
     * @param warmUp runs after all checks of the configuration, before it listens
     */
    private static GatewayServer start(GatewayServer gateway, Runnable warmUp) {
        try {
            gateway.discover();
            warmUp.run();
            gateway.listen();
            return gateway;
        } catch (Exception e) {
            final GatewayException failure = gateway.startFailure(e);
            gateway.stop();
            throw failure;
        }
    }

    private PromptExecutor newExecutor() {
        final int threads = config.get(GatewaySettings.PROMPT_THREADS);
        return new PromptExecutor(
                threads == 0 ? PromptExecutor.usualThreads() : threads,
                config.get(GatewaySettings.PROMPT_QUEUE),
                encoders.allNative()
                        ? PromptExecutor.LARGE_NATIVE_BODY_BYTES
                        : PromptExecutor.LARGE_BODY_BYTES);
    }

    private AdmissionGate newGate() {
        return new AdmissionGate(
                config.get(RouterSettings.MAX_ACTIVE_REQUESTS),
                this::maxBodyBytesInFlight,
                models::activeLeases);
    }

    private long maxBodyBytesInFlight() {
        return HeapLimits.bodyBytesInFlight(config);
    }

    private void discover() {
        for (Discovery discovery : discoveries) {
            discovery.start(fleet.listener(discovery.source()));
        }
    }

    private void listen() throws Exception {
        accessLogs.start();
        tracing.start();
        admin.start();
        adminPort = admin.port();
        server.start();
        port = connector.getLocalPort();
        // answers go through as they come: the engine's encoding, redirects and refusals are the
        // client's
        client.getContentDecoderFactories().clear();
        client.getProtocolHandlers().clear();
        client.getProtocolHandlers()
                .put(new InterimResponses(config.get(GatewaySettings.MAX_HEAD_BYTES)));
        watchWorkers();
        LOG.info("listening on {}, admin port on {}", url(), adminUrl());
        models.all().forEach(GatewayServer::logServed);
    }

    private void watchWorkers() {
        final ClientShare share =
                config.get(GatewaySettings.MAX_CONNECTIONS) == null
                        ? new ClientShare(cap, freeDescriptors)
                        : null;
        fleet.watch(
                upstream -> {
                    final Runnable end = models.of(upstream.model()).watch(upstream);
                    if (share == null) {
                        return end;
                    }
                    final Runnable free = share.begun(upstream.descriptors());
                    return () -> {
                        end.run();
                        free.run();
                    };
                });
    }

    private static void logServed(ServedModel model) {
        LOG.info(
                "model {}, {} workers, mode {}; {} prefill workers, mode {}, requests are {}",
                LogText.of(model.name()),
                model.registry().workers(WorkerPool.MAIN).size(),
                model.config().get(RouterSettings.MODE).spelling(),
                model.registry().workers(WorkerPool.PREFILL).size(),
                model.config().get(GatewaySettings.PREFILL_MODE).spelling(),
                model.registry().canSplit() ? "split" : "not split");
    }

    private GatewayException startFailure(Exception e) {
        if (e instanceof GatewayException known) {
            return known;
        }
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof BindException inUse) {
                return (admin.port() <= 0 ? Ports.ADMIN : Ports.SERVING).failure(config, inUse);
            }
        }
        return new GatewayException("the gateway did not start: " + FailureText.of(e), e);
    }

    /**
     * The port in use.
     *
     * @return the real one where the configuration says 0; of a closed gateway the former one
     */
    public int port() {
        return port;
    }

    /**
     * The admin port in use.
     *
     * @return the real one where the configuration says 0; of a closed gateway the former one
     */
    public int adminPort() {
        return adminPort;
    }

    /**
     * Where it listens for clients.
     *
     * @return a URL of the configured address and the port in use
     */
    public String url() {
        return Ports.SERVING.url(config, port());
    }

    /**
     * Where it listens for operators.
     *
     * @return a URL of the configured address and the admin port in use
     */
    public String adminUrl() {
        return Ports.ADMIN.url(config, adminPort());
    }

    /**
     * What {@code GET /debug/workers} answers.
     *
     * @return a JSON object
     */
    public String workersPage() {
        return endpoints.workers().toString();
    }

    /**
     * The router of the workers that answer clients, for inspection and for embedding. Of several
     * models the first one's.
     *
     * @return the router; closed by {@link #close}
     */
    public KvRouter router() {
        return models.first().routers().main();
    }

    /**
     * The router of the workers of a model that answer clients.
     *
     * @param model its name
     * @return the router; closed by {@link #close}
     * @throws IllegalArgumentException if no such model is served
     */
    public KvRouter router(String model) {
        final KvRouter router = models.routerOrNull(model);
        if (router == null) {
            throw new IllegalArgumentException(
                    "no model is named '" + model + "'; there are: " + config.modelNames());
        }
        return router;
    }

    /** Where requests wait for workers that answer clients of the first model; null for nowhere. */
    RouterQueue queueOrNull() {
        return models.first().routers().queueOrNull(WorkerPool.MAIN);
    }

    /** Requests that the routers of all models and pools count. */
    int activeLeases() {
        return models.activeLeases();
    }

    /** What {@code POST} and {@code DELETE /admin/workers} use. */
    AdminDiscovery admin() {
        return byAdmin;
    }

    /**
     * Reads again what may have changed: the file of workers, files of tokens, trust stores; opens
     * the access log anew. What cannot be read stays as it is, and the log says so.
     */
    public void reload() {
        final List<Runnable> all = new ArrayList<>();
        all.add(adminTokens::reload);
        all.add(trusted::reload);
        all.add(workerKey::reload);
        all.add(trustStore::reload);
        all.add(() -> NatsAccesses.check(config)); // read at each connection
        all.add(() -> EtcdStores.check(config));
        discoveries.forEach(discovery -> all.add(discovery::reload));
        all.add(accessLogs::reopen);
        reload(all);
    }

    /** Each of them, whatever one before it throws. */
    static void reload(List<Runnable> all) {
        for (Runnable each : all) {
            try {
                each.run();
            } catch (GatewayException | IllegalArgumentException e) {
                LOG.warn("{}; what was read before stays", e.getMessage());
            } catch (RuntimeException | Error e) { // such as no memory for a file
                LOG.error("not all was read again; what was read before stays", e);
            }
        }
    }

    /**
     * The same, and the settings: what is live of them holds from now on, unless an operator has
     * set it over the admin port; what is not is named in the log and at {@code GET /settings}. Of
     * settings that cannot be read, or do not go together, none is taken.
     *
     * @param source reads flags, variables and file again, as at the start
     */
    public void reload(Callable<GatewayConfig> source) {
        settings.read(source);
        reload();
    }

    /**
     * Has something take changes of settings that the gateway does not use itself, such as {@link
     * GatewaySettings#LOG_LEVEL}.
     *
     * @param taker called after each change, with what holds from now on
     */
    public void onSettings(Consumer<GatewayConfig> taker) {
        settings.add(_ -> taker.accept(config));
    }

    /**
     * Changes the routing mode of the main pool of every model for requests that do not choose one
     * themselves.
     *
     * @param mode the mode from now on
     */
    public void mode(RoutingMode mode) {
        settings.mode(mode.spelling());
    }

    /**
     * Ends so that no request is lost where load balancers ask for readiness: says that it is not
     * ready, serves on for {@link GatewaySettings#LAME_DUCK}, then closes. A {@link #close} ends
     * that time.
     *
     * @throws InterruptedException if the thread is interrupted in this time; it is not closed then
     */
    public void drain() throws InterruptedException {
        if (closing.getCount() > 0) {
            readiness.drain();
            Http2ConnectionFactory.goAway(connector);
            final Duration lameDuck = config.get(GatewaySettings.LAME_DUCK);
            LOG.info("not ready any more; the port closes in {} ms", lameDuck.toMillis());
            var _ = closing.await(lameDuck.toNanos(), TimeUnit.NANOSECONDS);
        }
        closeAfterDrain(HANDSHAKES);
    }

    /**
     * Stops listening, waits for running requests up to the configured drain timeout, cuts what is
     * left and frees everything. All of that in an interrupted thread, too, which is interrupted
     * again afterwards. Safe to call twice.
     */
    @Override
    public void close() {
        closeAfterDrain(Duration.ZERO);
    }

    /** The same without waiting for running requests: they are cut at once. */
    public void cut() {
        close(Duration.ZERO, Duration.ZERO, ": the gateway ends without waiting for them");
    }

    private void closeAfterDrain(Duration handshakes) {
        final Duration limit = config.get(GatewaySettings.DRAIN_TIMEOUT);
        close(handshakes, limit, " at the end of drain-timeout-ms=" + limit.toMillis());
    }

    /**
     * @param whyCut what the log says after the number of requests that are cut
     */
    private void close(Duration handshakes, Duration drainTimeout, String whyCut) {
        closing.countDown();
        readiness.drain();
        cap.end(); // it would have the port accept again while that is closed
        Uninterrupted.run(() -> connector.close(handshakes));
        Http2ConnectionFactory.goAway(connector);
        final boolean isIdle = idleWithin(drainTimeout);
        cutHeads();
        if (!isIdle) {
            LOG.warn("{} requests are cut{}", requests.getCurrentRequestCount(), whyCut);
            models.all().forEach(model -> model.routers().closeQueues());
            cutRunning();
        }
        stopApart();
    }

    /** In a thread of its own: the HTTP server drops an interrupt that meets its end. */
    private void stopApart() {
        final FutureTask<Void> stopped = new FutureTask<>(this::stop, null);
        try {
            Thread.ofPlatform().name("kvasir-stop").start(stopped);
        } catch (OutOfMemoryError e) { // there can be no more threads
            stopped.run();
        }
        try {
            var _ = Uninterrupted.call(stopped::get);
        } catch (ExecutionException e) {
            switch (e.getCause()) {
                case RuntimeException failure -> throw failure;
                case Error failure -> throw failure;
                default -> throw new IllegalStateException("not all was closed", e.getCause());
            }
        }
    }

    /** Until something may have ended; interrupted or not. */
    private static void pause() {
        var _ =
                Uninterrupted.call(
                        () -> {
                            Thread.sleep(DRAIN_POLL_MS);
                            return true;
                        });
    }

    /** Answers what has not come whole, for a short time at most. */
    private void cutHeads() {
        final long startNs = System.nanoTime();
        while (cap.cutHeads() && System.nanoTime() - startNs < CUT_TIME.toNanos()) {
            pause();
        }
    }

    /**
     * Cuts what runs, for a short time at most: requests whose bodies are still arriving, and those
     * that get further only now, by a retry or after their prompt was read.
     */
    void cutRunning() {
        final long startNs = System.nanoTime();
        while (requests.getCurrentRequestCount() > 0
                && System.nanoTime() - startNs < CUT_TIME.toNanos()) {
            handler.cutBodies();
            running.forEach(ProxyExchange::cut);
            pause();
        }
    }

    /**
     * Whether all requests have ended in time, and open connections have been silent for a moment:
     * on one that was just opened, or is kept, a request may be on its way. One whose head goes on
     * coming is waited for.
     */
    private boolean idleWithin(Duration limit) {
        final long startNs = System.nanoTime();
        long busyNs = startNs;
        while (true) {
            final long nowNs = System.nanoTime();
            final boolean isBusy = requests.getCurrentRequestCount() > 0;
            if (isBusy) {
                busyNs = nowNs;
            } else if (!cap.hasConnections()) {
                return true;
            } else if (nowNs - busyNs > SETTLE_NS) {
                final long silenceNs = cap.silenceNs(); // of all: not at each step
                if (silenceNs > SETTLE_NS) {
                    return true;
                }
                busyNs = nowNs - silenceNs;
            }
            if (nowNs - startNs > limit.toNanos()) {
                return !isBusy;
            }
            pause();
        }
    }

    /**
     * A request that was cut frees its leases on an I/O thread; the routers' memory goes after
     * that.
     */
    private void awaitLeases() {
        final long deadline = System.nanoTime() + LEASE_WAIT_NS;
        while (models.activeLeases() > 0 && System.nanoTime() - deadline < 0) {
            pause();
        }
    }

    /** Each of them, whatever one before it throws. */
    private void stop() {
        final List<AutoCloseable> all = new ArrayList<>(discoveries);
        all.add(fleet::close);
        all.add(this::stopServing);
        all.add(executor);
        all.add(this::awaitLeases);
        all.add(this::stopAdmin);
        all.add(tracing);
        all.add(release);
        models.all().forEach(model -> all.add(model.routers()));
        all.add(encoders);
        all.add(accessLogs); // last: a cut request may add its line after its server has stopped
        Closing.all(all);
    }

    /** Breaks off what runs: requests that have come after all others were cut. */
    void stopServing() {
        try {
            server.stop();
        } catch (Exception e) {
            LOG.warn("requests were cut off: {}", FailureText.of(e));
        }
    }

    private void stopAdmin() {
        try {
            admin.stop();
        } catch (Exception e) {
            LOG.warn("the admin port did not stop: {}", FailureText.of(e));
        }
    }

    private GatewayActivity activity(AdmissionGate gate) {
        return new GatewayActivity(
                gate.preparing(),
                executor.waiting(),
                gate.unread(),
                gate.bodyBytes(),
                answers.bytes(),
                running.size(),
                (int) running.stream().filter(ProxyExchange::isStream).count(),
                connector.getConnectedEndPoints().size(),
                accessLogs.dropped());
    }
}
