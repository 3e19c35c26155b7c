package io.kvasir.nixl.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange.Watch;
import io.kvasir.nixl.exchange.Records.Received;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Signals;

import org.agrona.LangUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;

/** What every exchange promises, tried with real parts. */
public abstract class ExchangeContract {
    /** Longest wait for what should come soon. */
    protected static final Duration PATIENCE = Duration.ofSeconds(Records.PATIENCE_SECONDS);

    private final List<MetadataExchange> opened = new ArrayList<>();

    /** A new one, which finds the records of all that were opened in this test. */
    protected abstract MetadataExchange open() throws Exception;

    /** Starts {@link RecordOwner#serve} in another process. */
    protected abstract Process startOwner(String name, long incarnation) throws Exception;

    /** Tells an exchange the line that the owner has printed. */
    protected void meet(MetadataExchange exchange, String line) {}

    /** Lets the time pass after which the records of a silent owner end, if it can be skipped. */
    protected void passSilence() {}

    /** Keeps an exchange to be closed with the test. */
    protected final <T extends MetadataExchange> T closing(T exchange) {
        opened.add(exchange);
        return exchange;
    }

    @AfterEach
    void closeAll() {
        opened.reversed().forEach(MetadataExchange::close);
    }

    private static void refused(Kind kind, String part, Runnable call) {
        final ExchangeException refusal = assertThrows(ExchangeException.class, call::run);
        assertEquals(kind, refusal.kind(), refusal.getMessage());
        assertTrue(refusal.getMessage().contains(part), refusal.getMessage());
    }

    @Test
    void aPublishedRecordIsFoundWithAllItsBytes() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final PeerRecord record = Records.record("prefill/0 ä.*>", 5, 1);
        a.publish(record);
        a.publish(record);
        assertEquals(record, b.find("prefill/0 ä.*>", PATIENCE));
        assertEquals(record, a.find("prefill/0 ä.*>", PATIENCE));
    }

    @Test
    void theLargestRecordFits() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final byte[] metadata = new byte[PeerRecord.MAX_BYTES - 200];
        final PeerRecord record =
                new PeerRecord(
                        "large", 1, 1, metadata, new PeerMemory.Pool(Records.LAYOUT, 4096), "");
        a.publish(record);
        assertEquals(record, b.find("large", PATIENCE));
    }

    @Test
    void whoIsNotThereIsNamedWhenPatienceEnds() throws Exception {
        final MetadataExchange a = open();
        refused(Kind.NOT_FOUND, "nobody", () -> a.find("nobody", Duration.ofMillis(20)));
        refused(Kind.NOT_FOUND, "nobody", () -> a.find("nobody", Duration.ZERO));
    }

    @Test
    void aPatienceBelowZeroIsRefusedAndTheLongestIsTaken() throws Exception {
        final MetadataExchange a = open();
        final IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class, () -> a.find("a", Duration.ofSeconds(-1)));
        assertEquals("patience=PT-1S, at least 0", refusal.getMessage());
        final FutureTask<PeerRecord> search =
                new FutureTask<>(() -> a.find("a", Duration.ofSeconds(Long.MAX_VALUE)));
        searching(search);
        a.publish(Records.record("a", 1, 1));
        assertEquals(Records.record("a", 1, 1), search.get());
    }

    /** Returns when the search waits. */
    private static void searching(FutureTask<PeerRecord> search) {
        final Thread thread = Thread.ofPlatform().daemon().start(search);
        Eventually.holds(
                "a search that waits",
                () -> search.isDone() || thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Test
    void aSearchEndsWithItsExchange() throws Exception {
        final MetadataExchange a = open();
        final FutureTask<PeerRecord> search =
                new FutureTask<>(() -> a.find("nobody", Duration.ofDays(1)));
        searching(search);
        a.close();
        Eventually.holds("the end of the search", search::isDone);
        final ExchangeException refusal =
                assertInstanceOf(ExchangeException.class, search.exceptionNow());
        assertEquals(Kind.UNAVAILABLE, refusal.kind());
        assertEquals("the exchange is closed: nobody is not looked for", refusal.getMessage());
        refused(Kind.UNAVAILABLE, "closed", () -> a.find("nobody", Duration.ofDays(1)));
    }

    @Test
    void watchersHearOfUpChangedAndGoneInOrder() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final Received one = new Received();
        final Received all = new Received();
        b.watch("a", one);
        b.watch(null, all);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", one.next());
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", one.next());
        a.withdraw("a");
        assertEquals("GONE a 1.2", one.next());
        a.publish(Records.record("other", 1, 1));
        assertEquals("UP a 1.1", all.next());
        assertEquals("CHANGED a 1.2", all.next());
        assertEquals("GONE a 1.2", all.next());
        assertEquals("UP other 1.1", all.next());
        assertEquals(0, one.waiting());
    }

    @Test
    void whateverAListenerThrowsTheOthersAreNotifiedAndTheExchangeGoesOn() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final Received received = new Received();
        final List<Throwable> faults =
                List.of(
                        new IllegalStateException("scripted"),
                        new AssertionError("scripted"),
                        new Exception("scripted"));
        for (Throwable fault : faults) {
            b.watch("a", (change, record) -> LangUtil.rethrowUnchecked(fault));
        }
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", received.next());
        for (Throwable fault : faults) {
            final Watch watch = b.watch("a", (change, record) -> LangUtil.rethrowUnchecked(fault));
            watch.close();
        }
        a.withdraw("a");
        assertEquals("GONE a 1.2", received.next());
    }

    @Test
    void aListenerMayEndItsOwnWatchAndThatOfAnother() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final List<Watch> watches = new ArrayList<>();
        final Received first = new Received();
        final Received other = new Received();
        final Received last = new Received();
        watches.add(
                b.watch(
                        "a",
                        (change, record) -> {
                            first.onRecord(change, record);
                            watches.forEach(Watch::close);
                        }));
        watches.add(b.watch("a", other));
        b.watch("a", last);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", last.next());
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", last.next());
        assertEquals("UP a 1.1", first.next());
        assertEquals(0, first.waiting());
        assertEquals(0, other.waiting());
    }

    @Test
    void aLateWatcherHearsOfWhatIsThereAndAClosedOneOfNothing() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        a.publish(Records.record("a", 1, 1));
        b.find("a", PATIENCE);
        final Received late = new Received();
        final Received closed = new Received();
        final Received other = new Received();
        b.watch("b", other);
        try (Watch watch = b.watch("a", closed)) {
            assertNotNull(watch);
        }
        b.watch("a", late);
        assertEquals("UP a 1.1", late.next());
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", late.next());
        assertEquals("UP a 1.1", closed.next());
        assertEquals(0, closed.waiting());
        assertEquals(0, other.waiting());
    }

    @Test
    void aNewerIncarnationTakesOverAndAStaleOneIsRefused() throws Exception {
        final MetadataExchange old = open();
        final MetadataExchange young = open();
        final MetadataExchange witness = open();
        final Received received = new Received();
        witness.watch("a", received);
        old.publish(Records.record("a", 1, 7));
        assertEquals("UP a 1.7", received.next());
        young.publish(Records.record("a", 2, 1));
        assertEquals("CHANGED a 2.1", received.next());
        final Received atOld = new Received();
        old.watch("a", atOld);
        for (String event = atOld.next(); !event.endsWith(" a 2.1"); event = atOld.next()) {
            assertEquals("UP a 1.7", event);
        }
        refused(Kind.STALE, "1.8", () -> old.publish(Records.record("a", 1, 8)));
        refused(Kind.STALE, "2.0", () -> young.publish(Records.record("a", 2, 0)));
        final PeerRecord sameNumbers =
                new PeerRecord(
                        "a", 2, 1, new byte[9], new PeerMemory.Pool(Records.LAYOUT, 4096), "");
        refused(Kind.STALE, "2.1", () -> young.publish(sameNumbers));
        old.withdraw("a");
        assertEquals(Records.record("a", 2, 1), witness.find("a", PATIENCE));
        assertEquals(0, received.waiting());
    }

    @Test
    void oneExchangePublishesSeveralNamesUpToItsLimit() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        for (int i = 0; i < MetadataExchange.MAX_OWN; i++) {
            a.publish(Records.record("n" + i, 1, 1));
        }
        refused(Kind.CAPACITY, "64", () -> a.publish(Records.record("one more", 1, 1)));
        for (int i = 0; i < MetadataExchange.MAX_OWN; i++) {
            assertEquals("n" + i, b.find("n" + i, PATIENCE).name());
        }
    }

    @Test
    void aClosedExchangeTakesItsRecordsBack() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        final Received received = new Received();
        b.watch(null, received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        a.close();
        a.close();
        assertEquals("GONE a 1.1", received.next());
        assertThrows(ExchangeException.class, () -> a.publish(Records.record("a", 1, 2)));
    }

    @Test
    void theRecordOfAKilledProcessGoesAwayAndItsSuccessorComes() throws Exception {
        final MetadataExchange a = open();
        final Received received = new Received();
        a.watch("mortal", received);
        for (int incarnation = 1; incarnation <= 2; incarnation++) {
            final Process owner = startOwner("mortal", incarnation);
            try {
                meet(a, line(owner));
                assertEquals("UP mortal " + incarnation + ".1", received.next());
            } finally {
                owner.destroyForcibly().waitFor();
            }
            passSilence();
            assertEquals("GONE mortal " + incarnation + ".1", received.next());
        }
    }

    private static String line(Process owner) throws IOException {
        final String line = owner.inputReader(StandardCharsets.US_ASCII).readLine();
        assertNotNull(line, "the owner has ended");
        return line;
    }

    @Test
    void theRecordOfAStoppedProcessGoesAwayAndComesBackWithIt() throws Exception {
        final MetadataExchange a = open();
        final Received received = new Received();
        a.watch("sleeper", received);
        final Process owner = startOwner("sleeper", 1);
        try {
            meet(a, line(owner));
            assertEquals("UP sleeper 1.1", received.next());
            Signals.stop(owner);
            passSilence();
            assertEquals("GONE sleeper 1.1", received.next());
            Signals.goOn(owner);
            assertEquals("UP sleeper 1.1", received.next());
            owner.getOutputStream().close();
            assertEquals("GONE sleeper 1.1", received.next());
            assertEquals(0, owner.waitFor());
        } finally {
            owner.destroyForcibly().waitFor();
        }
    }
}
