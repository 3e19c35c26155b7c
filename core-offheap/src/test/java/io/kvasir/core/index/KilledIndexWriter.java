package io.kvasir.core.index;

import io.kvasir.core.memory.MemoryGate;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;

/**
 * Applies messages to an index in a file, each drawn from the same numbers, until it is killed.
 * Goes on after the last message that the file has.
 */
final class KilledIndexWriter {
    static final int SLOTS = 24;
    static final PrefixIndexConfig CONFIG = new PrefixIndexConfig(SLOTS, 70, 500, 8 << 20);

    /** Words that are kept with slot 0: messages applied so far. */
    static final int MESSAGES = 0;

    /** A line is written each so many messages. */
    private static final int MESSAGES_PER_LINE = 500;

    private KilledIndexWriter() {}

    static IndexMemory memory(Path file) throws IOException {
        return IndexMemory.open(file, CONFIG, 16, 1337L, 0);
    }

    static PrefixIndex index(IndexMemory memory) {
        return new PrefixIndex(CONFIG, new MemoryGate("a test"), memory);
    }

    /** The same messages for the same seed. */
    static SlotEvents events(long seed) {
        return new SlotEvents(new Random(seed), SLOTS);
    }

    static void apply(PrefixIndex index, SlotEvents events, long message) {
        index.keptWord(0, MESSAGES, message + 1); // of the same change as the message
        SlotMessage.next(events, SLOTS, message).apply(index);
    }

    public static void main(String[] arguments) throws IOException {
        try (PrefixIndex index = index(memory(Path.of(arguments[0])))) {
            final SlotEvents events = events(Long.parseLong(arguments[1]));
            final long first = index.keptWord(0, MESSAGES);
            for (long message = 0; message < first; message++) {
                SlotMessage.next(events, SLOTS, message);
            }
            for (long message = first; ; message++) {
                apply(index, events, message);
                if (message % MESSAGES_PER_LINE == 0) {
                    System.out.println(message);
                }
            }
        }
    }
}
