package io.kvasir.panama.nixl;

import io.kvasir.panama.libc.NativeText;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A loaded NIXL library; it stays loaded for the life of the process. Safe for any thread. */
public final class NixlLibrary {
    private final NixlCapi capi;
    private final NixlTransferCalls calls;
    private final String path;

    NixlLibrary(NixlCapi capi, NixlTransferCalls calls, String path) {
        this.capi = capi;
        this.calls = calls;
        this.path = path;
    }

    /**
     * Returns where the library lies.
     *
     * @return its path, or its bare name when the system's loader found it
     */
    public String path() {
        return path;
    }

    /**
     * Makes an agent. Takes under a millisecond; loads no plugin.
     *
     * @param name unique among all agents that will know each other; not empty, no NUL
     * @param config how it runs
     * @return the agent, owned by the caller
     * @throws IllegalArgumentException if the name is empty or has a NUL
     * @throws NixlException if NIXL refuses
     */
    public NixlAgent createAgent(String name, NixlAgentConfig config) {
        final String checked = NativeText.checkName(name, "agent name");
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = NativeText.allocatePointer(arena);
            NixlStatus.check(
                    capi.call(
                            NixlFunction.CREATE_CONFIGURED_AGENT,
                            arena.allocateFrom(checked),
                            AgentConfigDescriptor.allocate(arena, config),
                            out),
                    NixlFunction.CREATE_CONFIGURED_AGENT.symbol(),
                    "agent=" + checked);
            return new NixlAgent(capi, calls, NativeText.pointer(out), checked);
        }
    }

    @Override
    public String toString() {
        return "NixlLibrary[" + path + "]";
    }
}
