package io.kvasir.protocol.handoff;

import java.util.Set;

/** Members of request bodies by which one engine is handed another one's blocks. */
public final class HandoffMembers {
    private static final Set<String> NAMES =
            Set.of(
                    KvTransferParams.FIELD,
                    DisaggregatedParams.FIELD,
                    Bootstrap.HOST,
                    Bootstrap.PORT,
                    Bootstrap.ROOM);

    private HandoffMembers() {}

    /**
     * Whether a member is one of them. Such a member lets its sender name blocks that belong to
     * other requests: only what splits requests itself may set it.
     *
     * @param name the member's name, without escapes
     * @return true for the members of vLLM, SGLang and TensorRT-LLM
     */
    public static boolean contains(String name) {
        return NAMES.contains(name);
    }
}
