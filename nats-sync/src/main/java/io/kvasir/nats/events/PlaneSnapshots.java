package io.kvasir.nats.events;

import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.state.LockedStore;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.registry.FailureText;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.PlaneState;
import io.kvasir.router.Worker;
import io.kvasir.router.state.SnapshotCause;
import io.kvasir.router.state.SnapshotCounts;
import io.kvasir.router.state.SnapshotStatus;
import io.kvasir.router.state.WorkerSnapshots;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.time.Clock;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Snapshots of an event plane in JetStream, which all routers over it share. Each checks once a
 * second how many messages the stream has that no snapshot has, and how old they are; past a
 * threshold, or half the age at which the stream drops them, one of them takes a snapshot:
 *
 * <ol>
 *   <li>it takes the lock, which it checks before each further step;
 *   <li>it records up to which message its index has everything: N;
 *   <li>it writes every worker, each exact at message N or a later one, and reads all back;
 *   <li>it purges the stream up to the message of the snapshot <em>before</em>, as far as all
 *       consumers have got: with either of both snapshots the stream has what is missing;
 *   <li>it deletes the snapshots before that one.
 * </ol>
 *
 * <p>Nothing is purged where the snapshot before is there no more, or where the bucket, as others
 * have made it, drops snapshots by their age: no snapshot might have what was purged.
 *
 * <p>Whatever ends it in between leaves a snapshot and all messages after it. A holder that was
 * stopped for long and continues without the lock changes nothing either: it fails at its next
 * check, and a step that it was about to do is one that another snapshot has made harmless. No
 * snapshot follows one with a later message.
 *
 * <p>A router that starts restores its workers from the newest snapshot that is whole, and its
 * {@link JetStreamEventSource} begins after {@link #start}. What could not be restored is not saved
 * over: such a router takes no snapshots until it has read what is saved. That is tried again with
 * pauses that grow. A worker that is EXACT by then has more than was saved of it; each other one
 * {@linkplain KvRouter#rejoinPlane joins the plane anew}, so that it has what is saved and, of the
 * stream, all that came after. So does a worker that has lost messages, once, with each snapshot
 * that has it whole.
 *
 * <p>Events of workers that a router does not have stay in the stream, and what is saved of them in
 * its snapshots for an hour, as long as the stream would have had their events.
 */
public final class PlaneSnapshots implements PlaneState {
    /** What taking a snapshot does, one after the other. */
    enum Step {
        /** The lock is held. */
        LOCKED,
        /** The snapshot is there, and was read back. */
        SAVED,
        /** The stream was purged. */
        PURGED,
        /** Older snapshots are deleted. */
        DELETED
    }

    private static final Logger LOG = LoggerFactory.getLogger(PlaneSnapshots.class);
    private static final Clock CLOCK = Clock.systemUTC();
    private static final Duration PERIOD = Duration.ofSeconds(1);
    private static final int AGE_STEPS = 8; // at least between two that are due by age
    private static final Duration RETRY = Duration.ofSeconds(10);
    private static final long FRESH_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long RESET_LIMIT_NS = TimeUnit.MINUTES.toNanos(1);
    private static final long RESET_PAUSE_MS = 200;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final PlaneSnapshotConfig config;
    private final LockedStore store;
    private final SharedStream stream;
    private final Consumer<Step> steps;
    private final long retryNs;
    private final long freshNs; // how long a catalogue that was read counts as the newest
    private final SnapshotCounts counts = new SnapshotCounts();
    private final CountDownLatch closing = new CountDownLatch(1);
    private SnapshotCatalogue catalogue; // null where NATS could not be read; guarded by this
    private RadixState legacy; // null where there are snapshots, or it is not there; likewise
    private ZonedDateTime made; // of the stream; likewise
    private long catalogueNs; // when it was read; likewise
    private boolean unread; // whether what is saved is still to be read; guarded by this
    private boolean foreign; // it is another router's, with other settings; guarded by this
    private final UnrestoredWorkers unrestored; // what is saved of them; guarded by this
    private long nextLostNs = System.nanoTime(); // when it is read again; likewise
    private boolean agingSaid; // that the bucket drops snapshots; of the thread
    private long savedUpTo; // by the newest snapshot that is known; of the thread
    private final LastReason lastReason = new LastReason(); // of no snapshot; of the thread
    private long nextTryNs = System.nanoTime(); // likewise
    private long nextByAgeNs = nextTryNs; // likewise
    private Thread thread; // null before the start and without one; guarded by this

    private PlaneSnapshots(
            PlaneSnapshotConfig config,
            LockedStore store,
            SharedStream stream,
            Consumer<Step> steps,
            Duration retry) {
        this.config = config;
        this.store = store;
        this.stream = stream;
        this.steps = steps;
        this.retryNs = retry.toNanos();
        this.freshNs = Math.min(FRESH_NS, retryNs);
        this.unrestored = new UnrestoredWorkers(retry);
    }

    /**
     * Reads what is saved. Where NATS does not answer now, nothing is restored and nothing saved
     * before it does.
     *
     * @param access where NATS is
     * @param names whose events
     * @param store of the snapshots; closed with this, or when this fails
     * @throws IOException if {@link PlaneSnapshotConfig#reset} is set and not all can be deleted
     */
    public static PlaneSnapshots open(
            NatsAccess access,
            EventSubjects names,
            NatsStateStore store,
            PlaneSnapshotConfig config)
            throws IOException {
        return open(access, names, store, config, _ -> {}, RETRY);
    }

    /**
     * The same for tests.
     *
     * @param steps called after each step, to end or delay it there
     * @param retry pause after what has failed
     */
    static PlaneSnapshots open(
            NatsAccess access,
            EventSubjects names,
            NatsStateStore store,
            PlaneSnapshotConfig config,
            Consumer<Step> steps,
            Duration retry)
            throws IOException {
        return open(store, new EventStream(access, names, config.replicas()), config, steps, retry);
    }

    /** The same with any stream and store; both are closed with this, or when this fails. */
    static PlaneSnapshots open(
            LockedStore store,
            SharedStream stream,
            PlaneSnapshotConfig config,
            Consumer<Step> steps,
            Duration retry)
            throws IOException {
        final PlaneSnapshots opened = new PlaneSnapshots(config, store, stream, steps, retry);
        try {
            if (config.reset()) {
                opened.reset();
            }
            opened.read();
            return opened;
        } catch (IOException | RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    private synchronized void read() {
        try {
            readAll();
        } catch (IOException e) {
            unread = true;
            LOG.error(
                    "what is saved of the event plane cannot be read; this router begins with what"
                            + " the stream has, and takes no snapshots until it has read it: {}",
                    FailureText.of(e));
            LOG.debug("what is saved of the event plane cannot be read", e);
        }
    }

    private void readAll() throws IOException {
        made = stream.state().made();
        readCatalogue();
        if (catalogue.newestOrNull() == null) {
            readLegacy();
        }
        unread = false;
    }

    private void readCatalogue() throws IOException {
        final long nowNs = System.nanoTime();
        catalogue = SnapshotCatalogue.read(store, made, config.blockSize());
        catalogueNs = nowNs;
        known(catalogue);
        if (catalogue.isForeign()) {
            foreign = true;
            LOG.error(
                    "{} has snapshots that do not fit this router; it takes none. With another"
                            + " block-size, use another nats-component",
                    store);
        }
        if (!catalogue.all().isEmpty()) {
            LOG.info("snapshots of {} workers are in {}", catalogue.all().size(), store);
        }
    }

    /** Counts the newest one; how old it is in ms, by the server's clock, 0 for none. */
    private long known(SnapshotCatalogue saved) throws IOException {
        if (saved.newestOrNull() == null) {
            return 0;
        }
        final Duration age = store.age(saved.newestOrNull().toString());
        final long ageMs = age == null ? 0 : age.toMillis(); // just deleted, after a newer one
        counts.known(saved.takenMs(), ageMs);
        return ageMs;
    }

    /** What other routers have saved in the same bucket, before this fleet has saved anything. */
    private void readLegacy() throws IOException {
        try (InputStream in = store.get(RadixState.OBJECT, 0)) {
            if (in != null) {
                final byte[] object = in.readAllBytes();
                try {
                    legacy = RadixState.read(object);
                    LOG.info(
                            "{} workers are in {} of {}",
                            legacy.workers(),
                            RadixState.OBJECT,
                            store);
                } catch (IOException e) {
                    LOG.warn(
                            "{} in {} is left as it is: {}",
                            RadixState.OBJECT,
                            store,
                            FailureText.of(e));
                    LOG.debug("{} in {} is left as it is", RadixState.OBJECT, store, e);
                }
            }
        }
    }

    /**
     * Where the source of the plane is to begin.
     *
     * @return null where nothing could be read
     */
    public synchronized StreamPosition start() {
        return catalogue == null ? null : new StreamPosition(made, catalogue.begin());
    }

    // -- reset

    private void reset() throws IOException {
        LOG.warn(
                "reset-states: all snapshots in {} and all messages of stream {} are deleted now;"
                        + " routers that run over the same plane miss what they have not read, and"
                        + " routers that start know nothing of what the workers hold",
                store,
                stream.name());
        try {
            final long sinceNs = System.nanoTime();
            while (!store.lock()) {
                if (System.nanoTime() - sinceNs > RESET_LIMIT_NS) {
                    throw new IOException(
                            "reset-states: another router is taking a snapshot and does not end");
                }
                Thread.sleep(RESET_PAUSE_MS);
            }
            for (String object : store.list()) {
                if (SnapshotName.orNull(object) != null) {
                    store.delete(object);
                }
            }
            store.checkLock();
            stream.purge();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("reset-states was interrupted", e);
        } finally {
            store.unlock();
        }
    }

    // -- restore

    @Override
    public Restored restore(
            EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
        // before the lock: one reading does for all that wait
        final long sinceNs = System.nanoTime();
        return Uninterrupted.get(() -> restoreNow(worker, slot, pipeline, index, sinceNs));
    }

    private synchronized Restored restoreNow(
            EventPlaneWorker worker,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index,
            long sinceNs) {
        if (catalogue == null) {
            unrestored.add(worker, null);
            return null;
        }
        Restored restored = null;
        boolean tried = false;
        SnapshotName unusable = null;
        // another router may have saved anew, and deleted what was found before
        for (int tries = 0;
                tries < 2 && restored == null && refresh(tried || isUnknown(worker, sinceNs));
                tries++) {
            final SnapshotCatalogue.Found found = catalogue.of(worker);
            if (found == null) {
                unrestored.remove(worker);
                loadLegacy(worker, slot, pipeline);
                return null;
            }
            tried = true;
            try {
                restored = Uninterrupted.call(() -> load(worker, found, slot, pipeline, index));
                unusable = found.object();
            } catch (IOException e) {
                LOG.warn("{} cannot be read: {}", found.object(), FailureText.of(e));
                LOG.debug("{} cannot be read", found.object(), e);
            }
        }
        if (restored != null) {
            unrestored.restored(worker, unusable);
        } else {
            unrestored.add(worker, unusable);
            counts.restoreFailed();
            LOG.error("worker {} of the event plane cannot be restored", worker);
        }
        return restored;
    }

    /** Whether nothing was saved of a worker when that was read, which was before this moment. */
    private boolean isUnknown(EventPlaneWorker worker, long sinceNs) {
        return catalogue.of(worker) == null && catalogueNs - sinceNs < 0;
    }

    /** Reads the names again, and the snapshots where there is a new one; false if that fails. */
    private boolean refresh(boolean now) {
        final long nowNs = System.nanoTime();
        if (!now && nowNs - catalogueNs < freshNs) {
            return true;
        }
        try {
            final List<SnapshotName> names = SnapshotCatalogue.names(store, made);
            final SnapshotName newest = names.isEmpty() ? null : names.getFirst();
            if (!Objects.equals(newest, catalogue.newestOrNull())) {
                readCatalogue();
            }
            catalogueNs = nowNs;
            return true;
        } catch (IOException e) {
            LOG.warn("{} cannot be read: {}", store, FailureText.of(e));
            LOG.debug("{} cannot be read", store, e);
            return !now;
        }
    }

    private Restored load(
            EventPlaneWorker worker,
            SnapshotCatalogue.Found found,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index)
            throws IOException, InterruptedException {
        if (isClosing()) {
            return null; // an interrupt is the end then
        }
        try (InputStream in = store.get(found.object().toString(), found.section().offset())) {
            final StreamStart start =
                    in == null
                            ? null
                            : WorkerSnapshots.load(in, found.section(), slot, pipeline, index);
            if (start == null) {
                return null;
            }
            counts.restored(found.section().mark().heldBlocks());
            LOG.info(
                    "worker {} of the event plane: {} blocks as of event {} restored",
                    worker,
                    found.section().mark().heldBlocks(),
                    start.sequence());
            return new Restored(
                    start,
                    new StreamPosition(
                                    found.object().position().made(),
                                    found.section().mark().position())
                            .ofPlane());
        }
    }

    private boolean isClosing() {
        return closing.getCount() == 0;
    }

    /** Its events come again from the first one of the stream; what they change is there then. */
    private void loadLegacy(EventPlaneWorker worker, int slot, IndexPipeline pipeline) {
        if (legacy == null || catalogue.newestOrNull() != null) {
            return;
        }
        final long blocks =
                Uninterrupted.call(() -> isClosing() ? 0L : legacy.load(worker, slot, pipeline));
        if (blocks > 0) {
            counts.restored(blocks);
            LOG.info("worker {}: {} blocks taken from {}", worker, blocks, RadixState.OBJECT);
        }
    }

    // -- restore what could not be restored before

    /** Tries it again, where it is time; without the lock, as workers join the plane meanwhile. */
    private void restoreAgain(KvRouter router) throws InterruptedException {
        for (Worker worker : unrestoredOf(router)) {
            LOG.info("worker {}: what is saved of it can be read now", worker.planeOrNull());
            router.rejoinPlane(worker);
        }
    }

    /** Restores workers that have lost messages which another router has saved. */
    private void restoreLost(KvRouter router) throws InterruptedException {
        for (Worker worker : lostOf(router)) {
            LOG.info("worker {}: a snapshot has what was lost of it", worker.planeOrNull());
            router.rejoinPlane(worker);
        }
    }

    private synchronized List<Worker> lostOf(KvRouter router) {
        final List<Worker> lacking = unrestored.lacking(router.workers());
        if (lacking.isEmpty() || System.nanoTime() - nextLostNs < 0) {
            return List.of();
        }
        nextLostNs = System.nanoTime() + retryNs;
        return refresh(true) ? unrestored.savedOf(lacking, catalogue) : List.of();
    }

    private synchronized List<Worker> unrestoredOf(KvRouter router) {
        if (foreign || !(unread || unrestored.any()) || !unrestored.isTime()) {
            return List.of();
        }
        try {
            readAll();
        } catch (IOException e) {
            LOG.debug("what is saved of the event plane cannot be read yet", e);
            return List.of();
        }
        return unrestored.toRejoin(router == null ? List.of() : router.workers(), catalogue);
    }

    // -- save

    @Override
    public synchronized void start(KvRouter router) {
        if (config.threshold() == PlaneSnapshotConfig.NEVER || isClosing()) {
            return;
        }
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-plane-state")
                        .start(() -> lookAlways(router));
    }

    private void lookAlways(KvRouter router) {
        try {
            while (!closing.await(PERIOD.toNanos(), TimeUnit.NANOSECONDS)) {
                look(router);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** Checks whether a snapshot is due, and takes it; whether one was taken. */
    boolean look(KvRouter router) throws InterruptedException {
        if (System.nanoTime() - nextTryNs < 0) {
            return false;
        }
        counts.begun();
        try {
            restoreAgain(router);
            checkRestored();
            final SharedStream.State now = stream.state();
            follow(now.made());
            restoreLost(router);
            final boolean taken = isDue(now) && take(router, now);
            lastReason.ended();
            return taken;
        } catch (AbandonedException e) {
            final boolean isNew = lastReason.isNew(e.getMessage());
            if (isNew) {
                LOG.info("a snapshot of the event plane was given up: {}", e.getMessage());
            }
            if (isNew || e.snapshotCause() != SnapshotCause.UNRESTORED) { // which is a state
                counts.abandoned(e.snapshotCause());
            }
            if (e.snapshotCause() == SnapshotCause.LOCKED) {
                return false; // what the holder saves may be enough
            }
        } catch (IOException | RuntimeException | Error e) { // what was saved before is there still
            if (!isClosing()) {
                counts.failed();
                if (lastReason.isNew(FailureText.of(e))) {
                    LOG.error(
                            "no snapshot of the event plane was saved; it is tried again: {}",
                            FailureText.of(e));
                }
                LOG.debug("no snapshot of the event plane was saved", e);
            }
        }
        nextTryNs = System.nanoTime() + retryNs;
        return false;
    }

    /** Of a stream that was made anew nothing is saved: its messages are counted from 1 again. */
    private synchronized void follow(ZonedDateTime madeNow) {
        if (!madeNow.equals(made)) {
            made = madeNow; // the snapshots of the former stream mean nothing here
            savedUpTo = 0;
        }
    }

    private boolean isDue(SharedStream.State now) throws IOException {
        return isPastThreshold(now)
                || (System.nanoTime() - nextByAgeNs >= 0
                        && now.last() > savedUpTo
                        && isAboutToBeDropped(now));
    }

    private boolean isPastThreshold(SharedStream.State now) {
        return Math.min(now.messages(), now.last() - savedUpTo) > config.threshold();
    }

    /** Whether the oldest message that no snapshot has is half as old as it may become, or more. */
    private boolean isAboutToBeDropped(SharedStream.State now) throws IOException {
        final Duration mostAge = now.mostAge();
        if (mostAge.isZero()) {
            return false; // messages are kept for ever
        }
        final ZonedDateTime published = stream.publishedOrNull(savedUpTo + 1);
        final ZonedDateTime serverTime = now.timeOrNull();
        return published == null
                || published
                        .plus(mostAge.dividedBy(2))
                        .isBefore(serverTime == null ? ZonedDateTime.now(CLOCK) : serverTime);
    }

    /**
     * Not sooner: where an unknown worker holds back what is saved, what follows is old at once.
     */
    private static Duration ageStep(SharedStream.State now) {
        return now.mostAge().dividedBy(AGE_STEPS);
    }

    private static boolean isFresh(SnapshotCatalogue saved, long ageMs, SharedStream.State now) {
        return saved.newestOrNull() != null && ageMs < ageStep(now).toMillis();
    }

    private boolean take(KvRouter router, SharedStream.State now)
            throws IOException, AbandonedException, InterruptedException {
        checkRestored();
        if (!store.lock()) {
            throw new AbandonedException(
                    SnapshotCause.LOCKED, "another router is taking one at this moment");
        }
        try {
            return takeLocked(router, now);
        } catch (IllegalStateException e) {
            if (store.isLocked()) {
                throw e;
            }
            throw new AbandonedException(SnapshotCause.LOCK_LOST, e.getMessage());
        } finally {
            store.unlock();
        }
    }

    private synchronized void checkRestored() throws AbandonedException {
        if (foreign || unread || unrestored.any()) {
            throw new AbandonedException(
                    SnapshotCause.UNRESTORED, "this router has not restored what is saved");
        }
    }

    private boolean takeLocked(KvRouter router, SharedStream.State now)
            throws IOException, AbandonedException, InterruptedException {
        steps.accept(Step.LOCKED);
        final ZonedDateTime of = now.made();
        final SnapshotCatalogue saved = SnapshotCatalogue.read(store, of, config.blockSize());
        if (saved.newestOrNull() != null) {
            savedUpTo = Math.max(savedUpTo, saved.newestOrNull().sequence());
        }
        checkLost(router, saved);
        final long ageMs = known(saved);
        final boolean due = isDue(now);
        nextByAgeNs = System.nanoTime() + ageStep(now).toNanos();
        if (!due || (!isPastThreshold(now) && isFresh(saved, ageMs, now))) {
            return false; // another router has just taken one
        }
        final long upTo = router.eventPlane().vouchesUpTo(StreamPosition.store(of), now.first());
        if (upTo <= savedUpTo) {
            throw new AbandonedException(
                    SnapshotCause.BEHIND,
                    "this router has all events up to message "
                            + upTo
                            + " of "
                            + stream.name()
                            + ", and the newest snapshot up to "
                            + savedUpTo);
        }
        final SnapshotName name = new SnapshotName(new StreamPosition(of, upTo));
        save(router, name, saved);
        savedUpTo = upTo;
        steps.accept(Step.SAVED);
        if (saved.wholeOrNull() != null) {
            store.checkLock();
            final long upToWhole = saved.wholeOrNull().sequence();
            cleanUp(
                    "purged from the stream",
                    () -> {
                        if (stays(saved.wholeOrNull())) {
                            stream.purge(of, upToWhole);
                        }
                    });
        }
        steps.accept(Step.PURGED);
        cleanUp("deleted", () -> deleteBefore(name, String.valueOf(saved.wholeOrNull())));
        steps.accept(Step.DELETED);
        return true;
    }

    /** What is whole in a snapshot is not saved over with less. */
    private synchronized void checkLost(KvRouter router, SnapshotCatalogue saved)
            throws AbandonedException {
        if (!unrestored.savedOf(unrestored.lacking(router.workers()), saved).isEmpty()) {
            throw new AbandonedException(
                    SnapshotCause.UNRESTORED,
                    "this router has lost messages that are saved, and has not restored them yet");
        }
    }

    /** Whether a snapshot is there still, and will be: only then are its messages not needed. */
    private boolean stays(SnapshotName name) throws IOException {
        final Duration mostAge = store.maxAge();
        if (!mostAge.isZero()) {
            if (!agingSaid) {
                agingSaid = true;
                LOG.warn(
                        "{} drops snapshots that are {} s old, as others have made it: nothing is"
                                + " purged from stream {}, since no snapshot would have it then;"
                                + " make the bucket without a TTL",
                        store,
                        mostAge.toSeconds(),
                        stream.name());
            }
            return false;
        }
        if (store.age(name.toString()) == null) {
            LOG.warn("{} is in {} no more; its messages stay in the stream", name, store);
            return false;
        }
        return true;
    }

    private void save(KvRouter router, SnapshotName name, SnapshotCatalogue saved)
            throws IOException, AbandonedException, InterruptedException {
        final long startNs = System.nanoTime();
        final long takenMs = CLOCK.millis();
        final PlaneSnapshotWriter writer =
                new PlaneSnapshotWriter(
                        router,
                        store,
                        config.blockSize(),
                        name.sequence(),
                        saved.wholeOrNull() == null ? 0 : saved.wholeOrNull().sequence(),
                        takenMs);
        try {
            store.put(name.toString(), out -> writer.write(out, saved));
        } catch (PlaneSnapshotWriter.GivenUpException e) {
            throw new AbandonedException(e.snapshotCause(), e.getMessage());
        }
        final long ns = System.nanoTime() - startNs;
        counts.taken(ns, writer.bytes(), takenMs);
        LOG.info(
                "snapshot {} of {} workers, {} bytes, saved in {} ms",
                name,
                writer.workers(),
                writer.bytes(),
                TimeUnit.NANOSECONDS.toMillis(ns));
    }

    /** Something that the server may not let this user do. */
    private interface CleanUp {
        void run() throws IOException;
    }

    /** The snapshot is saved, whatever becomes of what it replaces; the next one tries it again. */
    private static void cleanUp(String what, CleanUp step) throws InterruptedIOException {
        try {
            step.run();
        } catch (InterruptedIOException e) {
            throw e; // closing
        } catch (IOException e) {
            LOG.warn("a snapshot is saved, but what it replaces cannot be {}", what, e);
        }
    }

    /** Deletes what is older than the newest, but for the one before it; and of other streams. */
    private void deleteBefore(SnapshotName newest, String before) throws IOException {
        for (String object : store.list()) {
            final SnapshotName name = SnapshotName.orNull(object);
            if (name != null
                    && !object.equals(before)
                    && (!name.isOf(newest.position().made())
                            || name.sequence() < newest.sequence())) {
                store.delete(object);
            }
        }
    }

    /** A snapshot was given up, and nothing has failed. */
    private static final class AbandonedException extends Exception {
        private static final long serialVersionUID = 1;

        private final SnapshotCause snapshotCause;

        AbandonedException(SnapshotCause snapshotCause, String message) {
            super(message);
            this.snapshotCause = snapshotCause;
        }

        SnapshotCause snapshotCause() {
            return snapshotCause;
        }
    }

    @Override
    public SnapshotStatus status() {
        return counts.status();
    }

    @Override
    public void close() {
        closing.countDown();
        final Thread running;
        synchronized (this) {
            running = thread;
            thread = null;
        }
        try {
            if (running != null) {
                running.interrupt();
                running.join(CLOSE_PATIENCE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        store.close();
        stream.close();
    }
}
