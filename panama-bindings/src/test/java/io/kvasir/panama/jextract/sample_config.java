package io.kvasir.panama.jextract;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;

/** In the shape of what jextract generates for a struct, written by hand; named as in C. */
@SuppressWarnings({"MemberName", "TypeName"}) // the names are jextract's
public class sample_config {
    private static final GroupLayout LAYOUT =
            MemoryLayout.structLayout(
                            SampleShared.C_BOOL.withName("fast"),
                            MemoryLayout.paddingLayout(3),
                            SampleShared.C_INT.withName("port"),
                            SampleShared.C_LONG.withName("delay"))
                    .withName("sample_config");

    public static final GroupLayout layout() {
        return LAYOUT;
    }

    public static final long fast$offset() {
        return 0;
    }

    public static final long port$offset() {
        return 4;
    }

    public static final long delay$offset() {
        return 8;
    }
}
