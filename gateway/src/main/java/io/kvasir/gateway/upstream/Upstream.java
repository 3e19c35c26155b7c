package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.BootstrapAddress;
import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerInput;
import io.kvasir.gateway.config.WorkerRole;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.pipeline.wire.LoraNumbers;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.disagg.WorkerPace;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadSource;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.net.URI;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * One worker server: its breaker and what was learned about it. Its ranks are workers of the router
 * and share its fate. Thread-safe.
 */
public final class Upstream {
    private static final Logger LOG = LoggerFactory.getLogger(Upstream.class);

    /** Among those that drain; no source is called so. */
    private static final String OPERATORS = "";

    /** Whether the engine turns texts into the tokens that the gateway hashes. */
    public enum TokenizerCheck {
        UNKNOWN,
        AGREES,
        DIFFERS;

        /** As metrics and status write it. */
        public String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private final WorkerConfig config;
    private final long id;
    private volatile String source;
    private final KvRouter router;
    private final UpstreamHealth health;
    private final Consumer<Upstream> changed;
    private final Set<RunningAttempt> underWay = ConcurrentHashMap.newKeySet();
    private final WorkerPace pace = new WorkerPace();
    private volatile List<Worker> ranks = List.of();
    private boolean admitted; // guarded by this
    private boolean contacted; // by a probe; guarded by this
    private final Set<String> drainers = new HashSet<>(); // sources, OPERATORS; guarded by this
    private boolean evenEjected; // guarded by this
    private volatile TokenizerCheck tokenizer = TokenizerCheck.UNKNOWN;
    private volatile String tokenizerDetail = "not asked yet";
    private volatile String otherModels; // null unless they are known to lack its own
    private volatile PromptRules promptRules; // null until its server's list of models names it
    private volatile int engineBlockSize = UsageReader.UNKNOWN;
    private volatile int engineBlocks = UsageReader.UNKNOWN;
    private volatile int maxModelLength = UsageReader.UNKNOWN;
    private volatile boolean statesCachedTokens;
    private Set<String> listed = Set.of(); // adapters that it lists; guarded by this
    private Map<Long, String> listedNumbers = Map.of(); // likewise
    private Map<Long, String> saidNumbers = Map.of(); // by operators; guarded by this
    private Map<Long, String> numbersSaid = Map.of(); // to the router; guarded by this
    private volatile boolean listedAdapters;

    /**
     * @param id unique among all servers that there ever were, and growing
     * @param router of its pool
     * @param admitted whether it may be used before it has answered
     * @param changed called with the server when it was taken out of use or came back, and when it
     *     has said other things of its model
     */
    Upstream(
            WorkerConfig config,
            String source,
            long id,
            KvRouter router,
            boolean admitted,
            Supplier<BreakerRules> rules,
            Consumer<Upstream> changed) {
        this.health = new UpstreamHealth(rules);
        this.changed = changed;
        this.source = source;
        this.config = config;
        this.id = id;
        this.router = router;
        this.admitted = admitted;
    }

    /** Name of the source that has spoken of it last. */
    public String source() {
        return source;
    }

    /** File descriptors that it takes without a request. */
    public long descriptors() {
        return Descriptors.of(config);
    }

    void source(String name) {
        source = name;
    }

    /** Which of all servers it is: another one of the same name has another number. */
    public long id() {
        return id;
    }

    /** Says which workers of the router it is. */
    void ranks(List<Worker> registered) {
        ranks = List.copyOf(registered);
        publish();
        tellCapacity();
        sayAdapters();
    }

    /** Has the router know which adapters it has: those that are configured, and those it lists. */
    private synchronized void sayAdapters() {
        final Set<String> all = new HashSet<>(config.adapters().names());
        all.addAll(listed);
        if (!all.isEmpty() || listedAdapters) {
            ranks.forEach(rank -> rank.adapters(all));
        }
        final Map<Long, String> numbers = new HashMap<>(saidNumbers);
        numbers.putAll(listedNumbers);
        if (!numbers.isEmpty() || !numbersSaid.isEmpty()) {
            ranks.forEach(rank -> rank.loraNumbers(numbers));
        }
        numbersSaid = numbers;
    }

    /**
     * Takes the adapters that the server lists.
     *
     * @param numbers names by number, as far as it says them
     * @throws IllegalArgumentException if they are too many; then nothing has changed
     */
    synchronized void adapters(Set<String> names, Map<Long, String> numbers) {
        final Set<String> before = listed;
        listed = Set.copyOf(names);
        listedNumbers = Map.copyOf(numbers);
        try {
            listedAdapters = true;
            sayAdapters();
        } catch (IllegalArgumentException e) {
            listed = before;
            throw e;
        }
        if (!before.equals(listed)) {
            LOG.info("worker {} lists {} adapters", name(), listed.size());
        }
    }

    /**
     * Takes what is known of the same engine under its former description, until it is asked again:
     * what its probe and its answers have said, and its adapters.
     */
    void takeLearned(Upstream former) {
        tokenizer(former.tokenizer, former.tokenizerDetail);
        otherModels(former.otherModels);
        promptRules(former.promptRules);
        maxModelLength(former.maxModelLength);
        statesCachedTokens = former.statesCachedTokens;
        cache(former.engineBlockSize, former.engineBlocks);
        takeAdapters(former);
    }

    /**
     * Takes what is known of the adapters of the same engine under its former description: what it
     * has listed, and the numbers that an operator has said. Where the router has no room for them
     * it stays with what is configured until the server lists them.
     */
    private void takeAdapters(Upstream former) {
        final Set<String> names;
        final Map<Long, String> numbers;
        final Map<Long, String> said;
        final boolean lists;
        synchronized (former) {
            names = former.listed;
            numbers = former.listedNumbers;
            said = former.saidNumbers;
            lists = former.listedAdapters;
        }
        synchronized (this) {
            listed = names;
            listedNumbers = numbers;
            saidNumbers = said;
            listedAdapters = lists;
            try {
                sayAdapters();
            } catch (IllegalArgumentException e) {
                listed = Set.of();
                listedAdapters = false;
                sayAdapters();
                LOG.warn("worker {}: {}", name(), LogText.of(e.getMessage()));
            }
        }
    }

    /**
     * Forgets the adapters that the server has listed; those that are configured stay, and so do
     * the numbers of its events, which are right while its engine runs.
     */
    synchronized void forgetAdapters() {
        listed = Set.of();
        listedAdapters = false;
        ranks.forEach(rank -> rank.adapters(config.adapters().names())); // also where there is none
    }

    /**
     * Takes the numbers that an operator says its events give to adapters; in place of what was
     * said before, beside what is configured and what it lists itself.
     *
     * @param names by number
     * @throws IllegalArgumentException if they are too many, a number is 0 or configured for
     *     another name, or a name is empty
     */
    public synchronized void loraNumbers(Map<Long, String> names) {
        LoraNumbers.check(names);
        config.adapters().numbers().forEach((number, name) -> checkName(names, number, name));
        saidNumbers = Map.copyOf(names);
        sayAdapters();
    }

    private static void checkName(Map<Long, String> names, long number, String configured) {
        final String name = names.getOrDefault(number, configured);
        if (!name.equals(configured)) {
            throw new IllegalArgumentException(
                    "'"
                            + name
                            + "' cannot have the number "
                            + number
                            + ", which lora-ids of the worker gives to '"
                            + configured
                            + "'; change one of them");
        }
    }

    /**
     * Names of adapters by number, as far as its events need not say them: those that were said
     * while it runs over those that are configured.
     */
    public synchronized Map<Long, String> loraNumbers() {
        final Map<Long, String> all = new HashMap<>(config.adapters().numbers());
        all.putAll(numbersSaid);
        return all;
    }

    /** Whether it has said which adapters it has, or has said to have none. */
    public boolean listsAdapters() {
        return listedAdapters;
    }

    /** Tells the router what the engine can take: as configured, else as the engine states it. */
    private void tellCapacity() {
        final long configured = config.limits().kvBlocks();
        for (Worker rank : ranks) {
            rank.capacity(
                    configured > 0 ? configured : engineBlocks,
                    config.limits().maxBatchedTokens(),
                    config.limits().maxRequests());
            rank.engineBlockSize(engineBlockSize);
        }
    }

    /** Whether requests are sent to it. */
    public synchronized boolean inUse() {
        return admitted
                && drainers.isEmpty()
                && (health.usable()
                        || (evenEjected && health.state() == UpstreamHealth.State.EJECTED));
    }

    /** Whether it may be used as far as it must have answered before. */
    synchronized boolean admitted() {
        return admitted;
    }

    /**
     * Has no new request sent to it, as operators want it; or has again, also where a source wants
     * none.
     */
    void drain(boolean begin) {
        synchronized (this) {
            if (begin) {
                drainers.add(OPERATORS);
            } else {
                drainers.clear();
            }
        }
        drainsChanged();
    }

    /**
     * Has no new request sent to it while a source wants it so.
     *
     * @return false if that was so before
     */
    boolean drain(String by, boolean begin) {
        synchronized (this) {
            if (!(begin ? drainers.add(by) : drainers.remove(by))) {
                return false;
            }
        }
        drainsChanged();
        return true;
    }

    /** Has no new request sent to it by all that want it so of another one. */
    void takeDrains(Upstream other) {
        final Set<String> others = other.drainers();
        synchronized (this) {
            drainers.addAll(others);
        }
        drainsChanged();
    }

    private synchronized Set<String> drainers() {
        return Set.copyOf(drainers);
    }

    private void drainsChanged() {
        publish();
        changed.accept(this);
    }

    /** Whether no new request is sent to it because operators or a source want it so. */
    public synchronized boolean draining() {
        return !drainers.isEmpty();
    }

    /** Name of the server, unique among those that are registered. */
    public String name() {
        return config.name();
    }

    /** Name of the model that it serves. */
    public String model() {
        return config.model();
    }

    /** Part of a request that it is there for. */
    public WorkerRole role() {
        return config.disaggregation().role();
    }

    /** What it is sent of a prompt. */
    public WorkerInput input() {
        return config.input();
    }

    /** Whether it is sent token ids instead of the client's text. */
    public boolean takesTokens() {
        return config.input() == WorkerInput.TOKENS;
    }

    /** How its engine hands prompts over, or takes them. */
    public HandoffProtocol handoff() {
        return config.disaggregation().handoff();
    }

    /** Where decode workers meet it; null where its protocol knows none. */
    public BootstrapAddress bootstrap() {
        return config.disaggregation().bootstrap();
    }

    /** What its engine calls the first of its ranks. */
    int firstRank() {
        return config.eventRank();
    }

    /** Where it is, in the operator's words. */
    public Map<String, String> labels() {
        return config.labels();
    }

    /** Names of what keeps requests from it that do not tolerate that. */
    public Set<String> taints() {
        return config.taints();
    }

    /** The workers that it is one of. */
    public WorkerPool pool() {
        return WorkerPool.of(role());
    }

    /** Value of {@code Authorization} that is this server's alone; null for none. */
    Secret credentials() {
        return config.credentials();
    }

    /** Where the server is. */
    public URI url() {
        return config.url();
    }

    /** The path on this server that a path of the gateway stands for. */
    public String path(String pathAndQuery) {
        return config.url().getRawPath() + pathAndQuery;
    }

    /** Workers of the router that the server is. */
    public List<Worker> ranks() {
        return ranks;
    }

    /** Whether the server has several data-parallel ranks. */
    public boolean hasRanks() {
        return config.dataParallelSize() > 1;
    }

    /** How fast it computes prompts, beside the others of its pool. */
    public WorkerPace pace() {
        return pace;
    }

    /** The breaker of the server. */
    public UpstreamHealth health() {
        return health;
    }

    /** Something came from the server. */
    public void received() {
        health.received();
    }

    /** A request got an answer that is no fault. */
    public void answered() {
        health.answered(System.nanoTime());
    }

    /**
     * A request failed, and that tells of the server: it was good, or another server answered it.
     *
     * @param request the same for requests that say the same
     */
    void faulted(long request, String description) {
        if (health.faulted(request, description, System.nanoTime())) {
            LOG.warn("worker {} at {} fails requests: {}", name(), url(), LogText.of(description));
            changed.accept(this);
        }
    }

    /** A connection was refused. */
    public void refused(String description) {
        if (health.refused(description)) {
            takeOut(description);
        }
    }

    /**
     * A probe failed. Requests under way end when many in a row got no answer, without a byte of
     * any other one in between.
     *
     * @param refused the connection was refused: then the system of the server is there, and has
     *     closed the connections of what is not
     */
    void probeFailed(UpstreamFault fault, boolean refused, String description) {
        if (health.probeFailed(fault, description)) {
            takeOut(description);
        }
        if (!refused && health.isSilent()) {
            underWay.forEach(attempt -> attempt.workerDied(description));
        }
    }

    /** An attempt begins. */
    public void begun(RunningAttempt attempt) {
        underWay.add(attempt);
    }

    /** An attempt is over. */
    public void ended(RunningAttempt attempt) {
        underWay.remove(attempt);
    }

    /**
     * A probe succeeded; true if what is known of the engine must be learned (again). One thread,
     * which alone brings the server back.
     */
    boolean probed() {
        if (health.state() == UpstreamHealth.State.DOWN && !forgetPredicted()) {
            return false; // the router's ring is full: a later probe brings it back
        }
        final UpstreamHealth.State before = health.probed(System.nanoTime());
        if (before == UpstreamHealth.State.DOWN) {
            statesCachedTokens = false; // what answers may be another engine, or have other options
        }
        final boolean first;
        synchronized (this) { // a request may have been answered before, and have said so
            first = !contacted;
            contacted = true;
            admitted = true;
        }
        if (before == null && !first) {
            return false;
        }
        publish();
        changed.accept(this);
        if (before == UpstreamHealth.State.DOWN || before == UpstreamHealth.State.EJECTED) {
            LOG.warn("worker {} at {} is back: it answers probes", name(), url());
        } else {
            LOG.info("worker {} at {} answers", name(), url());
        }
        return before != UpstreamHealth.State.EJECTED;
    }

    private void takeOut(String description) {
        changed.accept(this);
        var _ = forgetPredicted(); // where that is refused, it is made up for before the return
        LOG.warn("worker {} at {} is out of use: {}", name(), url(), LogText.of(description));
    }

    /**
     * A server that was down may have restarted with an empty cache. Once it is down, the room is
     * for others; when it returns, no request is under way to what was there before.
     */
    private boolean forgetPredicted() {
        boolean all = true;
        for (Worker worker : ranks) {
            all &= router.forgetPredicted(worker);
        }
        return all;
    }

    /**
     * Tells the router whether it may choose this server; reads the breaker under the lock, so that
     * the last writer tells the last state.
     *
     * @param even whether it may although it is ejected
     */
    synchronized void useEjected(boolean even) {
        evenEjected = even;
        publish();
    }

    private synchronized void publish() {
        final boolean use = inUse();
        for (Worker worker : ranks) {
            worker.available(use);
        }
    }

    /** Counts a page of metrics of which nothing could be reported. */
    LoadOutcome countLoad(LoadOutcome outcome) {
        return router.loadReports().add(LoadSource.METRICS, outcome);
    }

    void tokenizer(TokenizerCheck check, String detail) {
        tokenizer = check;
        tokenizerDetail = detail;
    }

    /** Outcome of the comparison of tokens. */
    public TokenizerCheck tokenizer() {
        return tokenizer;
    }

    /** What the comparison of tokens found, for operators. */
    public String tokenizerDetail() {
        return tokenizerDetail;
    }

    void otherModels(String namesOrNull) {
        otherModels = namesOrNull;
    }

    /**
     * Models that its server lists where the one that it is asked for is not among them, or null.
     */
    public String otherModels() {
        return otherModels;
    }

    void promptRules(PromptRules rulesOrNull) {
        if (promptRules != rulesOrNull) {
            promptRules = rulesOrNull;
            changed.accept(this);
        }
    }

    /** By whose rules its server makes prompts of chats; null where that is not known. */
    PromptRules promptRules() {
        return promptRules;
    }

    void cache(int blockSize, int blocks) {
        engineBlockSize = blockSize;
        engineBlocks = blocks;
        tellCapacity();
    }

    /** Tokens per block by the engine's own word, or {@link UsageReader#UNKNOWN}. */
    public int engineBlockSize() {
        return engineBlockSize;
    }

    /** Blocks of the engine's cache, or {@link UsageReader#UNKNOWN}. */
    public int engineBlocks() {
        return engineBlocks;
    }

    void maxModelLength(int tokens) {
        if (maxModelLength != tokens) {
            maxModelLength = tokens;
            changed.accept(this);
        }
    }

    /** Longest context by the engine's own word, or {@link UsageReader#UNKNOWN}. */
    public int maxModelLength() {
        return maxModelLength;
    }

    /**
     * The cached tokens that an answer states. Engines that state them leave them out when there
     * are none: once this one has stated some, silence means zero.
     */
    public int cachedTokens(UsageReader usage) {
        if (usage.cachedTokens() >= 0) {
            statesCachedTokens = true;
            return usage.cachedTokens();
        }
        return statesCachedTokens && usage.promptTokens() >= 0 ? 0 : UsageReader.UNKNOWN;
    }
}
