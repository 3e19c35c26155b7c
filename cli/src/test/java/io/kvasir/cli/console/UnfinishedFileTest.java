package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

class UnfinishedFileTest {
    @TempDir private Path dir;

    @Test
    void oneThatIsNotFinishedGoesAndTheOldOneStays() throws IOException {
        final Path target = Files.writeString(dir.resolve("f"), "old");
        final Path beside;
        try (UnfinishedFile file = new UnfinishedFile(target)) {
            beside = file.path();
            Files.writeString(beside, "ne");
            assertEquals("old", Files.readString(target));
        }
        assertFalse(Files.exists(beside));
        assertEquals("old", Files.readString(target));
    }

    @Test
    void oneThatIsFinishedTakesTheNameAlsoOfWhatALinkLeadsTo() throws IOException {
        final Path target = Files.writeString(dir.resolve("f"), "old");
        final Path link = Files.createSymbolicLink(dir.resolve("link"), target);
        try (UnfinishedFile file = new UnfinishedFile(link)) {
            Files.writeString(file.path(), "new");
            file.finish();
        }
        assertEquals("new", Files.readString(target));
        assertTrue(Files.isSymbolicLink(link));
    }

    @Test
    void whatIsNoFileIsWrittenItself() throws IOException {
        final Path device = Path.of("/dev/null");
        try (UnfinishedFile file = new UnfinishedFile(device)) {
            assertEquals(device, file.path());
            file.finish();
        }
        assertTrue(Files.exists(device));
    }
}
