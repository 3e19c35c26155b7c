package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.spi.StateStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.stream.Stream;

class SnapshotNameTest {
    private static final ZonedDateTime MADE =
            ZonedDateTime.of(2026, 3, 4, 5, 6, 7, 123_456_789, ZoneOffset.ofHours(2));
    private static final String TEXT = "plane-1772593567123456789-0000000000000001234.snapshot";

    private static SnapshotName name(ZonedDateTime made, long sequence) {
        return new SnapshotName(new StreamPosition(made, sequence));
    }

    @Test
    void itIsReadAsItIsWritten() {
        assertEquals(TEXT, name(MADE, 1_234).toString());
        final SnapshotName read = SnapshotName.orNull(TEXT);
        assertEquals(1_234, read.sequence());
        assertEquals(TEXT, read.toString());
        assertTrue(read.isOf(MADE), "whatever the zone");
        assertFalse(read.isOf(MADE.plusNanos(1)));
        assertEquals(TEXT, StateStore.checkName(TEXT));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "radix-state",
                "prefixes-0000000000000000001.snapshot",
                "plane-1-2.snapshot",
                "plane-9999999999999999999-0000000000000001234.snapshot",
                "plane-1772593567123456789-9999999999999999999.snapshot",
                "plane-1772593567123456789-0000000000000001234.snapshot.tmp"
            })
    void othersAreNone(String object) {
        assertNull(SnapshotName.orNull(object));
    }

    @Test
    void theOneWithTheLatestMessageIsTheNewest() {
        final List<Long> order =
                Stream.of(9L, 1_000L, 10L, Long.MAX_VALUE, 0L)
                        .map(sequence -> name(MADE, sequence))
                        .sorted(SnapshotName.NEWEST_FIRST)
                        .map(SnapshotName::sequence)
                        .toList();
        assertEquals(List.of(Long.MAX_VALUE, 1_000L, 10L, 9L, 0L), order);
    }
}
