package io.kvasir.services.select;

import io.kvasir.gateway.server.FailureWords;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.indexer.IndexGroup;
import io.kvasir.services.indexer.IndexRegistry;
import io.kvasir.services.indexer.Registration;
import io.kvasir.services.slots.SlotTracker;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The workers that callers have named, and which of them requests can be sent to: those have their
 * events in an index and their load in the tracker. A lock orders all calls.
 */
final class WorkerCatalogue {
    /** A worker as it is now. */
    record Entry(WorkerSheet sheet, boolean isSchedulable, List<String> reasons) {}

    private final IndexRegistry registry;
    private final SlotTracker tracker;
    private final int maxWorkers;
    private final Map<Long, Entry> workers = new TreeMap<>(Long::compareUnsigned);

    /**
     * @param maxWorkers workers at most, whether requests can be sent to them or not
     */
    WorkerCatalogue(IndexRegistry registry, SlotTracker tracker, int maxWorkers) {
        this.registry = registry;
        this.tracker = tracker;
        this.maxWorkers = maxWorkers;
    }

    /**
     * Names a worker, or names it anew.
     *
     * @throws ServiceException 503 when there is no room for a further one
     */
    synchronized Entry put(WorkerSheet sheet) throws ServiceException {
        final Entry before = workers.get(sheet.id());
        if (before == null && workers.size() >= maxWorkers) {
            throw ServiceException.noRoom(
                    "as many workers are named as may be (" + maxWorkers + "; --max-workers)");
        }
        return settle(before, sheet);
    }

    /** Changes what is said of a worker. */
    interface Change {
        WorkerSheet of(WorkerSheet before) throws ServiceException;
    }

    /**
     * Changes what was said of a worker.
     *
     * @throws ServiceException 404 if it is not there
     */
    synchronized Entry change(long id, Change change) throws ServiceException {
        final Entry before = known(id);
        return settle(before, change.of(before.sheet));
    }

    private Entry known(long id) throws ServiceException {
        final Entry known = workers.get(id);
        if (known == null) {
            throw new ServiceException(404, "worker " + Long.toUnsignedString(id) + " not found");
        }
        return known;
    }

    /**
     * Takes a worker out, with its reservations and what it holds.
     *
     * @throws ServiceException 404 if it is not there
     */
    synchronized Entry remove(long id) throws ServiceException {
        final Entry known = known(id);
        leave(known);
        workers.remove(id);
        return known;
    }

    private Entry settle(Entry before, WorkerSheet sheet) throws ServiceException {
        final List<String> reasons = sheet.reasons();
        if (before != null
                && before.isSchedulable
                && reasons.isEmpty()
                && before.sheet.isSameInside(sheet)) {
            return keep(new Entry(sheet, true, List.of()));
        }
        if (before != null) {
            leave(before);
        }
        if (!reasons.isEmpty()) {
            return keep(new Entry(sheet, false, reasons));
        }
        try {
            enter(sheet);
            return keep(new Entry(sheet, true, List.of()));
        } catch (ServiceException e) {
            return keep(
                    new Entry(sheet, false, List.of("reconciliation failed: " + e.getMessage())));
        } catch (RuntimeException | Error e) { // such as out of memory, or of descriptors
            if (before != null) {
                keep(
                        new Entry(
                                before.sheet,
                                false,
                                List.of("reconciliation failed: " + FailureWords.of(e))));
            }
            throw e;
        }
    }

    private Entry keep(Entry entry) {
        workers.put(entry.sheet.id(), entry);
        return entry;
    }

    /**
     * Has load tracked and events read, all of it or nothing: a group that has an index has a
     * tracker.
     */
    private void enter(WorkerSheet sheet) throws ServiceException {
        tracker.register(sheet.key(), sheet.id(), sheet.blockSize(), sheet.start(), sheet.count());
        boolean isListened = false;
        boolean isDone = false;
        try {
            for (int rank = (int) sheet.start(); rank < sheet.start() + sheet.count(); rank++) {
                registry.register(
                        new Registration(
                                sheet.id(),
                                sheet.key(),
                                sheet.blockSize(),
                                rank,
                                sheet.eventsOf(rank),
                                sheet.replayOf(rank)));
                isListened = true;
            }
            isDone = true;
        } finally {
            if (!isDone) {
                undo(sheet, isListened);
            }
        }
    }

    private void undo(WorkerSheet sheet, boolean isListened) throws ServiceException {
        if (isListened) {
            forget(sheet);
        }
        tracker.unregister(sheet.key(), sheet.id());
    }

    private void forget(WorkerSheet sheet) throws ServiceException {
        registry.unregister(sheet.id(), sheet.key().model(), sheet.key().routingGroup());
    }

    private void leave(Entry entry) throws ServiceException {
        if (entry.isSchedulable) {
            forget(entry.sheet);
            tracker.unregister(entry.sheet.key(), entry.sheet.id());
        }
    }

    /** All workers, by group and id. */
    synchronized List<Entry> all() {
        final List<Entry> all = new ArrayList<>(workers.values()); // by id
        all.sort(Comparator.comparing(entry -> entry.sheet.key()));
        return all;
    }

    /**
     * What a worker of a group is.
     *
     * @throws ServiceException 404 if requests cannot be sent to it, or it is of another group
     */
    synchronized WorkerSheet schedulable(GroupKey key, long id) throws ServiceException {
        final Entry known = workers.get(id);
        if (known == null || !known.isSchedulable || !known.sheet.key().equals(key)) {
            throw new ServiceException(
                    404,
                    "schedulable worker "
                            + Long.toUnsignedString(id)
                            + " not found for "
                            + key.words());
        }
        return known.sheet;
    }

    /** What prompts may ask of a worker; nothing where it is not there. */
    synchronized Set<String> marks(long id) {
        final Entry known = workers.get(id);
        return known == null ? Set.of() : known.sheet.marks();
    }

    /**
     * The index of a group that has a worker that requests can be sent to.
     *
     * @throws ServiceException 503 if it has none
     */
    IndexGroup index(GroupKey key) throws ServiceException {
        try {
            return registry.group(key);
        } catch (ServiceException e) {
            throw none(key);
        }
    }

    /** 503: a group has no worker that requests can be sent to. */
    static ServiceException none(GroupKey key) {
        return ServiceException.noRoom("no schedulable workers for " + key.words());
    }
}
