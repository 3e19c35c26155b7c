package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** The build runs some tests a second time with the unchecked access that is shipped. */
class ShippedModeTest {
    @Test
    void memoryIsCheckedWhereTheRunSaysSo() {
        assertEquals(Boolean.getBoolean("kvasir.memory.checked"), OffHeap.isCheckable());
    }
}
