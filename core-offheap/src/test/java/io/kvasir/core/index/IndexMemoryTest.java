package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.kvasir.core.memory.MemoryGate;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;

class IndexMemoryTest {
    @TempDir private Path folder;

    private String discarded(PrefixIndexConfig config, int blockSize) throws IOException {
        final IndexMemory memory =
                IndexMemory.open(folder.resolve("index"), config, blockSize, 1337L, 0);
        new PrefixIndex(config, new MemoryGate("the test"), memory)
                .close(); // it closes the memory, which it has made
        return memory.discardedOrNull();
    }

    @Test
    void theSettingThatIsAnotherOneIsNamed() throws IOException {
        final PrefixIndexConfig config = new PrefixIndexConfig(4, 256, 1_024);
        assertNull(discarded(config, 16));
        assertNull(discarded(config, 16));
        assertEquals(
                "it was made with other settings: block-size 16 instead of 32",
                discarded(config, 32));
    }
}
