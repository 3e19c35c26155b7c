package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.router.spi.StateStore;

import org.junit.jupiter.api.Test;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;

/** A store that names a snapshot and fails at reading it. */
class SnapshotCatalogueTest {
    private static final ZonedDateTime MADE =
            ZonedDateTime.of(2026, 3, 4, 5, 6, 7, 0, ZoneOffset.UTC);
    private static final SnapshotName NAME = new SnapshotName(new StreamPosition(MADE, 5));

    private static StateStore failing(IOException atOpening, IOException atReading) {
        final InputStream in =
                new InputStream() {
                    @Override
                    public int read() throws IOException {
                        throw atReading;
                    }

                    @Override
                    public int read(byte[] into, int at, int length) throws IOException {
                        throw atReading;
                    }
                };
        return (StateStore)
                Proxy.newProxyInstance(
                        SnapshotCatalogueTest.class.getClassLoader(),
                        new Class<?>[] {StateStore.class},
                        (_, method, _) ->
                                switch (method.getName()) {
                                    case "list" -> List.of(NAME.toString());
                                    case "toString" -> "store";
                                    default -> {
                                        if (atOpening != null) {
                                            throw atOpening;
                                        }
                                        yield in;
                                    }
                                });
    }

    private static IOException refusal(StateStore store) {
        return assertThrows(IOException.class, () -> SnapshotCatalogue.read(store, MADE, 16));
    }

    @Test
    void aStoreThatDoesNotAnswerIsNoDamagedSnapshot() {
        final IOException refused = new IOException("Permissions Violation");
        assertSame(refused, refusal(failing(refused, null)));
        assertSame(refused, refusal(failing(null, refused)));
    }

    @Test
    void aSnapshotThatEndsTooSoonIsDamaged() throws IOException {
        final SnapshotCatalogue read =
                SnapshotCatalogue.read(failing(null, new EOFException("ends after 3")), MADE, 16);
        assertEquals(NAME, read.newestOrNull());
        assertNull(read.wholeOrNull());
    }
}
