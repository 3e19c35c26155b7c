package io.kvasir.router.state;

import io.kvasir.router.spi.StateStore;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.TreeMap;

/** Objects in memory, for tests. */
public class MemoryStateStore implements StateStore {
    /** What several openings of one store share. */
    public static final class Memory {
        private final TreeMap<String, byte[]> objects = new TreeMap<>();
        private int opened; // stores of it
        private int holder; // of the lock, counted from 1; 0 for none
    }

    private final Memory memory;
    private final int number;
    private boolean closed;

    /** Opens a store. */
    public MemoryStateStore(Memory memory) {
        this.memory = memory;
        synchronized (memory) {
            number = ++memory.opened;
        }
    }

    @Override
    public boolean lock() {
        synchronized (memory) {
            if (memory.holder == 0 && !closed) {
                memory.holder = number;
            }
            return memory.holder == number;
        }
    }

    private void checkLocked() {
        if (memory.holder != number) {
            throw new IllegalStateException("the lock is not held");
        }
    }

    @Override
    public void put(String name, Content content) throws IOException {
        StateStore.checkName(name);
        synchronized (memory) {
            checkLocked();
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            content.writeTo(out);
            memory.objects.put(name, out.toByteArray());
        }
    }

    @Override
    public InputStream get(String name, long offset) {
        StateStore.checkName(name);
        if (offset < 0) {
            throw new IllegalArgumentException("offset is negative: " + offset);
        }
        synchronized (memory) {
            final byte[] bytes = memory.objects.get(name);
            if (bytes == null) {
                return null;
            }
            final int from = (int) Math.min(offset, bytes.length);
            return new ByteArrayInputStream(bytes, from, bytes.length - from);
        }
    }

    @Override
    public List<String> list() {
        synchronized (memory) {
            return List.copyOf(memory.objects.keySet());
        }
    }

    @Override
    public void delete(String name) {
        StateStore.checkName(name);
        synchronized (memory) {
            checkLocked();
            memory.objects.remove(name);
        }
    }

    @Override
    public void close() {
        synchronized (memory) {
            closed = true;
            if (memory.holder == number) {
                memory.holder = 0;
            }
        }
    }
}
