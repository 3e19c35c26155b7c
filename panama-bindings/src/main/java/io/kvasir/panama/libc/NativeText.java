package io.kvasir.panama.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** C strings and out parameters. */
@SuppressWarnings("restricted") // a C string has no length until it is read
public final class NativeText {
    private NativeText() {}

    /**
     * Checks a string before it goes to C, where a NUL would cut it short in silence.
     *
     * @throws IllegalArgumentException if it is null, empty or has a NUL
     */
    public static String checkName(String text, String what) {
        if (checkValue(text, what).isEmpty()) {
            throw new IllegalArgumentException(what + " is empty");
        }
        return text;
    }

    /**
     * Checks a string that may be empty.
     *
     * @throws IllegalArgumentException if it is null or has a NUL
     */
    public static String checkValue(String text, String what) {
        if (text == null || text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException(what + " is null or has a NUL: " + text);
        }
        return text;
    }

    /** Returns a null pointer for a function to fill. */
    public static MemorySegment allocatePointer(Arena arena) {
        return arena.allocate(ValueLayout.ADDRESS);
    }

    /** Returns the pointer that a function filled in. */
    public static MemorySegment pointer(MemorySegment out) {
        return out.get(ValueLayout.ADDRESS, 0);
    }

    /** Copies the C string whose address a function filled in; UTF-8. */
    public static String string(MemorySegment out) {
        return pointer(out).reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** Copies the C string at an address; UTF-8. */
    public static String string(long address) {
        return MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** Native memory whose length is known. */
    public static MemorySegment segment(long address, long length) {
        return MemorySegment.ofAddress(address).reinterpret(length);
    }

    /** Copies native memory. */
    public static byte[] bytes(MemorySegment memory, long length) {
        return memory.reinterpret(length).toArray(ValueLayout.JAVA_BYTE);
    }
}
