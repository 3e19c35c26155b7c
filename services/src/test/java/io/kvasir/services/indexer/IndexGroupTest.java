package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

class IndexGroupTest {
    private static final int SLOTS = 2;
    private static final int TENANTS = 500;
    private static final int MANY_TENANTS = 5_000;
    private static final int LEAST_READS = 200;

    private final IndexGroup group =
            new IndexGroup(
                    new GroupKey("m", "default"), 4, new PrefixIndexConfig(SLOTS, 4_096, 4_096));

    @AfterEach
    void close() {
        group.close();
    }

    /** Instance n holds one block, whose hashes are n. */
    private Tenant admit(long instance) throws ServiceException {
        final Tenant tenant = group.admit(instance, 0);
        final long[] hash = {instance};
        Eventually.holds(() -> group.load(tenant, true, 0, hash, hash));
        return tenant;
    }

    @Test
    void aSlotThatIsBeingSweptIsWaitedFor() throws ServiceException {
        Tenant other = admit(1);
        for (int i = 2; i < 200; i++) {
            final Tenant former = other;
            other = admit(i);
            group.dismiss(former);
        }
        admit(200);
        final ServiceException refused =
                assertThrows(ServiceException.class, () -> group.admit(201, 0));
        assertEquals(503, refused.status());
    }

    private List<String> events() throws IOException {
        final List<String> events = new ArrayList<>();
        for (JsonNode event : Http.json(dump()).at("/m:default/events")) {
            events.add(
                    event.path("worker_id").asText()
                            + "="
                            + event.at("/event/data/stored/blocks/0/tokens_hash").asText());
        }
        return events;
    }

    @Test
    void aDumpSaysThatBlocksAreHashedForEagle() throws Exception {
        admit(1);
        assertFalse(dump().contains("eagle"));
        group.expectEagleBlocks();
        assertTrue(dump().contains("\"eagle\":1"), dump());
    }

    private String dump() throws IOException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        DumpWriter.write(List.of(group), out);
        return out.toString(StandardCharsets.UTF_8);
    }

    @Test
    void whatARankHeldIsNeverItsSuccessors() throws Exception {
        followEachOther(TENANTS);
    }

    @Tag("integration") // ten seconds
    @Test
    void norIsItWithManyOfThem() throws Exception {
        followEachOther(MANY_TENANTS);
    }

    private void followEachOther(int tenants) throws Exception {
        final AtomicBoolean ended = new AtomicBoolean();
        final AtomicLong newest = new AtomicLong(1);
        final AtomicLong reads = new AtomicLong();
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        final Thread matches =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    while (!ended.get()) {
                                        final long wanted = newest.get();
                                        for (Match match : group.match(new long[] {wanted}, 1)) {
                                            if (match.instance() != wanted) {
                                                wrong.add(match + " of " + wanted);
                                            }
                                        }
                                        reads.incrementAndGet();
                                    }
                                });
        final Thread dumps =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try {
                                        while (!ended.get()) {
                                            for (String event : events()) {
                                                final String[] ids = event.split("=", -1);
                                                if (!ids[0].equals(ids[1])) {
                                                    wrong.add("dump: " + event);
                                                }
                                            }
                                        }
                                    } catch (IOException e) {
                                        wrong.add(e.toString());
                                    }
                                });
        Tenant last = admit(1);
        for (int i = 2; i < tenants || reads.get() < LEAST_READS; i++) {
            final long id = i;
            final Tenant former = last;
            last = admit(id); // the former slot may not be swept yet
            newest.set(id);
            group.dismiss(former);
        }
        ended.set(true);
        matches.join();
        dumps.join();
        assertEquals(List.of(), List.copyOf(wrong));
        final long id = last.instance;
        Eventually.holds(() -> group.match(new long[] {id}, 1).size() == 1);
        assertEquals(List.of(id + "=" + id), events());
    }

    @Test
    void aDumpThatIsLoadedIsTheSameDump() throws Exception {
        final Tenant first = group.admit(-1, 3);
        final Tenant second = group.admit(7, 0);
        final long[] names = {11, 12, 13};
        final long[] locals = {1, 2, 3};
        Eventually.holds(() -> group.load(first, true, 0, names, locals));
        Eventually.holds(() -> group.load(first, false, 12, new long[] {-14}, new long[] {4}));
        Eventually.holds(() -> group.load(second, true, 0, new long[] {21}, new long[] {1}));
        Eventually.holds(() -> group.heldBlocks() == 5);
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        DumpWriter.write(List.of(group), out);
        try (IndexRegistry registry =
                new IndexRegistry(new PrefixIndexConfig(SLOTS, 4_096, 4_096), 1)) {
            final DumpReader reader = new DumpReader(registry);
            reader.read(new ByteArrayInputStream(out.toByteArray()));
            assertEquals(0, reader.leftOut());
            final IndexGroup copy = registry.group(new GroupKey("m", "default"));
            Eventually.holds(() -> copy.heldBlocks() == 5);
            final ByteArrayOutputStream again = new ByteArrayOutputStream();
            DumpWriter.write(registry.groups(), again);
            assertEquals(
                    Http.json(out.toString(StandardCharsets.UTF_8)),
                    Http.json(again.toString(StandardCharsets.UTF_8)));
            final List<Match> matches = copy.match(new long[] {1, 2, 4}, 3);
            assertTrue(matches.contains(new Match(-1, 3, 12, 12, 12, 12)), matches::toString);
            assertTrue(matches.contains(new Match(7, 0, 4, 4, 4, 4)), matches::toString);
        }
    }

    @Test
    void moreTokensThanANumberHoldsAreTheMost() throws Exception {
        final PrefixIndexConfig sizes = new PrefixIndexConfig(SLOTS, 4_096, 4_096);
        final long[] hashes = {1, 2, 3};
        try (IndexGroup large = new IndexGroup(new GroupKey("m", "large"), 1 << 30, sizes)) {
            final Tenant tenant = large.admit(1, 0);
            Eventually.holds(() -> large.load(tenant, true, 0, hashes, hashes));
            Eventually.holds(() -> large.heldBlocks() == hashes.length);
            final int most = Integer.MAX_VALUE;
            assertEquals(List.of(new Match(1, 0, most, most, most, most)), large.match(hashes, 3));
        }
    }
}
