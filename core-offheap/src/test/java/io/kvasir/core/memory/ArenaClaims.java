package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** What owns each block of lines of an arena that is in use; each has exactly one owner. */
public final class ArenaClaims {
    /** Blocks in use by what the arena says: first line to order. */
    private final NavigableMap<Integer, Integer> used;

    /** Blocks in use by what has been visited: first line to owner. */
    private final Map<Integer, String> owners = new TreeMap<>();

    /** Checks the arena; nothing is claimed yet. */
    public ArenaClaims(BuddyArena arena) {
        this.used = new TreeMap<>(BuddyArenaInvariants.check(arena));
    }

    /** Claims a block; fails when it has an owner. */
    public void claim(int line, String owner) {
        assertNotEquals(BuddyArena.NO_LINE, line, owner);
        final String before = owners.put(line, owner);
        assertEquals(null, before, () -> "two owners of line " + line + ", one is " + owner);
    }

    /** Owner of a block, null = not claimed. */
    public String owner(int line) {
        return owners.get(line);
    }

    /** First line of the block in use that a line is in. */
    public int firstLine(int line) {
        return used.floorKey(line);
    }

    /** Fails when a block in use has no owner, or one that is free has one. */
    public void checkAllClaimed() {
        assertEquals(owners.keySet(), used.keySet(), "blocks in use and blocks with an owner");
    }
}
