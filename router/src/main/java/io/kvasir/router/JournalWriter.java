package io.kvasir.router;

import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RoutingMode;

import java.util.EnumMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Keeps decisions in the router's journal: the chosen worker and the cheapest others, found among
 * all candidates. Any thread, each with its own selection, in whose record it writes.
 */
final class JournalWriter {
    private final DecisionJournal journal;
    private final Map<RoutingMode, long[]> modes = new EnumMap<>(RoutingMode.class);
    private final Map<RouteException.Kind, long[]> refusals =
            new EnumMap<>(RouteException.Kind.class);
    private final LongSupplier epochMs;

    /**
     * @param epochMs milliseconds since the epoch
     */
    JournalWriter(DecisionJournal journal, LongSupplier epochMs) {
        this.journal = journal;
        this.epochMs = epochMs;
        for (RoutingMode mode : RoutingMode.values()) {
            modes.put(mode, JournalRecord.shortText(mode.spelling()));
        }
        for (RouteException.Kind kind : RouteException.Kind.values()) {
            refusals.put(kind, JournalRecord.shortText(kind.name()));
        }
    }

    DecisionJournal journal() {
        return journal;
    }

    /**
     * Keeps a decision.
     *
     * @return its number, or {@link DecisionJournal#NONE}
     */
    long chosen(RouteRequest request, Decision decision) {
        final Selection selection = decision.selection();
        final JournalRecord record = begin(request, decision);
        if (selection.isBySession()) {
            record.bySession();
        }
        final RunnersUp others = selection.runnersUp(journal.candidates());
        others.find(selection);
        add(record, selection, selection.chosen());
        for (int i = 0; i < others.count(); i++) {
            add(record, selection, others.slot(i));
        }
        final double cost = selection.cost(selection.chosen());
        record.fleet(
                selection.candidates().count(),
                selection.workers().size(),
                others.count() == 0 ? cost : Math.min(cost, others.cost(0)));
        return journal.append(record);
    }

    /** Keeps that no worker was chosen. */
    void refused(RouteRequest request, Decision decision, RouteException.Kind kind) {
        final Selection selection = decision.selection();
        final JournalRecord record = begin(request, decision);
        record.fleet(selection.candidates().count(), selection.workers().size(), Double.NaN);
        record.refused(refusals.get(kind));
        journal.append(record);
    }

    private JournalRecord begin(RouteRequest request, Decision decision) {
        final JournalRecord record = decision.selection().record(journal);
        record.begin(
                epochMs.getAsLong(),
                decision.selection().rules().digest(),
                modes.get(decision.mode()),
                decision.overlapWeight(),
                decision.temperature());
        record.id(request.id());
        record.prompt(
                request.tokenCount(),
                request.blockCount,
                request.prefills(),
                decision.predictedCachedTokens());
        return record;
    }

    private static void add(JournalRecord record, Selection selection, int slot) {
        final Worker worker = selection.workers().at(slot);
        record.add(
                worker.journalName(),
                worker.dpRank(),
                selection.costs().state(slot),
                selection.cost(slot),
                selection.prefillBlocks(slot),
                selection.decodeBlocks(slot),
                selection.costs().overlap(slot),
                selection.costs().activePrefix(slot),
                selection.candidates().loads().activeRequests(slot),
                selection.addedBlocks(slot),
                selection.eventSequence(slot));
        final TierOverlaps tiers = selection.costs().tiers();
        record.tiers(tiers.host(slot), tiers.disk(slot), tiers.shared(slot));
    }
}
