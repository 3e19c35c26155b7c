package io.kvasir.panama.jextract;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;

/** The first part of {@link SampleHeader}: jextract spreads a long header over such a chain. */
@SuppressWarnings({"MemberName", "restricted"}) // names and layouts are as jextract generates them
class SampleShared {
    static final ValueLayout.OfInt C_INT = ValueLayout.JAVA_INT;
    static final ValueLayout.OfLong C_LONG = ValueLayout.JAVA_LONG;
    static final ValueLayout.OfBoolean C_BOOL = ValueLayout.JAVA_BOOLEAN;
    static final AddressLayout C_POINTER =
            ValueLayout.ADDRESS.withTargetLayout(
                    MemoryLayout.sequenceLayout(Long.MAX_VALUE, ValueLayout.JAVA_BYTE));

    public static FunctionDescriptor sample_open$descriptor() {
        return FunctionDescriptor.of(C_INT, C_POINTER, C_LONG);
    }

    public static int SAMPLE_OK() {
        return 0;
    }
}
