package io.kvasir.panama.jextract;

import java.lang.foreign.FunctionDescriptor;

/** In the shape of what jextract generates for a header, written by hand. */
@SuppressWarnings("MemberName") // the names are jextract's
public class SampleHeader extends SampleShared {
    public static FunctionDescriptor sample_is_open$descriptor() {
        return FunctionDescriptor.of(C_BOOL, C_POINTER);
    }

    public static FunctionDescriptor sample_close$descriptor() {
        return FunctionDescriptor.ofVoid(C_POINTER);
    }

    public static FunctionDescriptor sample_pass$descriptor() {
        return FunctionDescriptor.of(C_INT, sample_config.layout());
    }

    public static int SAMPLE_BUSY() {
        return -2;
    }
}
