package io.kvasir.pipeline.wire;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;

import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.collections.LongHashSet;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which adapter a number ({@code lora_id}) means in the events of one engine, for events that do
 * not say its name: by what events before said, by what was learned of the engine, by what was
 * configured, in this order. And which blocks were left out of the index because nothing said it.
 *
 * <p>A number that is found to mean another adapter than blocks were stored under is ambiguous:
 * nothing says which of its events was of which. It means nothing then until the engine has cleared
 * its cache or started anew, and the slot is {@link #isSpoiled spoiled}: it has to be emptied and
 * loaded again.
 *
 * <p>Bounded: {@value #MOST} numbers, {@value LeftOutBlocks#MOST} blocks; beyond that the view
 * stays incomplete until it is loaded again. One thread at a time; {@link #missing} on any.
 */
public final class LoraNumbers {
    /** Numbers that are known, or remembered as unknown, at most. */
    public static final int MOST = 4_096;

    private final Map<Long, String> configured;
    private final Long2ObjectHashMap<String> given = new Long2ObjectHashMap<>();
    private final Long2ObjectHashMap<String> announced = new Long2ObjectHashMap<>();
    private final Long2ObjectHashMap<String> used = new Long2ObjectHashMap<>();
    private final LongHashSet ambiguous = new LongHashSet();
    private final LongHashSet missedNumbers = new LongHashSet();
    private final LeftOutBlocks leftOut = new LeftOutBlocks();
    private long lastMissed;
    private long ambiguousAt = -1; // last message before that was found
    private boolean mendable;
    private boolean spoiled;
    private volatile int missing;

    /** Without a configured name. */
    public LoraNumbers() {
        this(Map.of());
    }

    /**
     * With names that hold in every life of the engine.
     *
     * @param configured names by number; not changed after
     */
    public LoraNumbers(Map<Long, String> configured) {
        this.configured = configured;
    }

    /**
     * Reads names by number as {@code NAME:7;OTHER:9}.
     *
     * @param text empty for none
     * @return names by number, in the order given
     * @throws IllegalArgumentException if it is no such list, or a number is given twice
     */
    public static Map<Long, String> parse(String text) {
        final Map<Long, String> names = new LinkedHashMap<>();
        for (String part : text.isEmpty() ? new String[0] : text.split(";", -1)) {
            final int colon = part.lastIndexOf(':');
            final long number = colon < 1 ? 0 : number(part.substring(colon + 1));
            if (number == 0) {
                throw new IllegalArgumentException(
                        text
                                + ": '"
                                + part
                                + "' is not NAME:NUMBER, the number a whole one but 0, which is the"
                                + " base model");
            }
            if (names.put(number, part.substring(0, colon)) != null) {
                throw new IllegalArgumentException(text + ": number " + number + " is given twice");
            }
        }
        check(names);
        return names;
    }

    private static long number(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /**
     * Checks names by number.
     *
     * @throws IllegalArgumentException if they are too many, a number is 0, which is the base
     *     model's, or a name is empty
     */
    public static void check(Map<Long, String> names) {
        if (names.size() > MOST) {
            throw new IllegalArgumentException(
                    names.size() + " numbers of LoRA adapters are too many; at most " + MOST);
        }
        names.forEach(
                (number, name) -> {
                    if (number == 0 || name.isEmpty()) {
                        throw new IllegalArgumentException(
                                "LoRA adapter '"
                                        + name
                                        + "' has number "
                                        + number
                                        + ": a name is needed, and 0 is the base model");
                    }
                });
    }

    /** The same names for a second reader of the same messages, with blocks of its own. */
    public LoraNumbers copy() {
        final LoraNumbers copy = new LoraNumbers(configured);
        copy.given.putAll(given);
        copy.announced.putAll(announced);
        copy.ambiguous.addAll(ambiguous);
        copy.ambiguousAt = ambiguousAt;
        return copy;
    }

    /** The adapter that a number means now; null where it is not known. */
    String nameOf(long number) {
        if (ambiguous.contains(number)) {
            return null;
        }
        final String said = announced.get(number);
        if (said != null) {
            return said;
        }
        final String learned = given.get(number);
        return learned != null || configured.isEmpty() ? learned : configured.get(number);
    }

    /** Blocks are stored under the name that a number means. */
    void used(long number, String name) {
        if (!used.containsKey(number)) {
            used.put(number, name);
        }
    }

    /** An event has named the adapter of a number. */
    void announced(long number, String name) {
        final String stored = used.get(number);
        if (stored != null && !stored.equals(name)) {
            spoil(number, Long.MAX_VALUE); // until the stream says of which message the event was
        } else if (!name.equals(announced.get(number))
                && (announced.size() < MOST || announced.containsKey(number))) {
            announced.put(number, name);
            mendable |= missedNumbers.contains(number);
        }
    }

    /**
     * Takes what was learned of the running engine in place of what was given before.
     *
     * @param names by number; at most {@link #MOST}
     * @param lastMessage number of the last message of the engine's that was decoded
     */
    public void give(Map<Long, String> names, long lastMessage) {
        for (Map.Entry<Long, String> entry : names.entrySet()) {
            final long number = entry.getKey();
            final String name = entry.getValue();
            final String stored = used.get(number);
            if (stored != null && !stored.equals(name)) {
                spoil(number, lastMessage);
            }
            if (!name.equals(announced.get(number))) {
                announced.remove(number);
            }
            mendable |= missedNumbers.contains(number) && !ambiguous.contains(number);
        }
        given.clear();
        given.putAll(names);
    }

    private void spoil(long number, long lastMessage) {
        announced.remove(number);
        ambiguous.add(number);
        ambiguousAt = Math.max(ambiguousAt, lastMessage);
        spoiled = true;
    }

    /** A message is about to be decoded; one that was not {@link #taken} is decoded again. */
    void decoding() {
        leftOut.undo();
        publish();
    }

    /** What was decoded last was taken. */
    void taken() {
        leftOut.taken();
    }

    /**
     * Blocks of a number without a name are left out.
     *
     * @param report whether those that are held already are only reported again
     */
    void missed(long number, StorageTier tier, long[] engineHashes, int count, boolean report) {
        lastMissed = number;
        if (missedNumbers.size() < MOST) {
            missedNumbers.add(number);
        }
        leftOut.add(tier, engineHashes, count, report);
        publish();
    }

    /** Blocks are stored in a lower tier by name: those that were left out are so there, too. */
    void named(StorageTier tier, long[] engineHashes, int count) {
        leftOut.addNamed(tier, engineHashes, count);
        publish();
    }

    /** Whether a store in a tier goes on from a block that was left out. */
    boolean isMissed(StorageTier tier, long engineHash) {
        return missing > 0 && leftOut.isMissing(tier, engineHash);
    }

    /**
     * Blocks are stored with a name; copies that were left out before stay so.
     *
     * @param report whether those that are held already are only reported again
     */
    void stored(StorageTier tier, long[] engineHashes, int count, CopyRule rule, boolean report) {
        leftOut.stored(tier, engineHashes, count, rule, report);
        settle();
    }

    /**
     * The engine has removed blocks.
     *
     * @param engineHashes those that the index has to remove are moved to the front
     * @return how many these are
     */
    int removed(StorageTier tier, long[] engineHashes, int count, CopyRule rule) {
        final int left = leftOut.removed(tier, engineHashes, count, rule);
        settle();
        return left;
    }

    /**
     * The engine has removed a copy of a block from the device.
     *
     * @param copies that it still holds
     * @return how many of these the index has
     */
    int removedTo(long engineHash, int copies) {
        final int left = leftOut.removedTo(engineHash, copies);
        settle();
        return left;
    }

    private void settle() {
        if (missing > 0 && leftOut.size() == 0) {
            settled();
        }
        publish();
    }

    /** The engine, or the index, has none of the blocks any more that were announced. */
    public void cleared() {
        used.clear();
        leftOut.clear();
        settled();
        publish();
    }

    private void settled() {
        missedNumbers.clear();
        mendable = false;
    }

    /**
     * The engine has cleared its cache in a message: what came before does not matter any more.
     *
     * @param message its number; one that came before a number was found to be ambiguous settles
     *     nothing
     */
    public void clearedIn(long message) {
        if (message > ambiguousAt) {
            ambiguous.clear();
        }
    }

    /** The engine has started anew: only what is configured is known of its numbers. */
    void forget() {
        given.clear();
        announced.clear();
        ambiguous.clear();
        ambiguousAt = -1;
        spoiled = false;
        cleared();
    }

    private void publish() {
        missing = leftOut.size();
    }

    /** Blocks that the engine holds, as far as is known, and that were left out. Any thread. */
    public int missing() {
        return missing;
    }

    /** Whether some of them have a name now: a replay would bring them. */
    public boolean isMendable() {
        return mendable;
    }

    /** Whether blocks may be stored under the name of an adapter that they are not of. */
    public boolean isSpoiled() {
        return spoiled;
    }

    /**
     * The slot is about to be loaded again.
     *
     * @param lastMessage number of the last message that was decoded
     */
    public void reloading(long lastMessage) {
        spoiled = false;
        if (ambiguousAt == Long.MAX_VALUE) {
            ambiguousAt = lastMessage;
        }
    }

    /** Why blocks are {@link #missing}, with the knob; empty if none are. */
    public String problem() {
        if (missing == 0) {
            return "";
        }
        final String left = missing + " blocks that name it are left out";
        return ambiguous.contains(lastMissed)
                ? "lora_id "
                        + lastMissed
                        + " has meant two adapters: "
                        + left
                        + " until the engine clears its cache or starts anew; have it say lora_name"
                : "the adapter of lora_id "
                        + lastMissed
                        + " is not known: "
                        + left
                        + "; set lora-ids=NAME:"
                        + lastMissed
                        + " of the worker";
    }
}
