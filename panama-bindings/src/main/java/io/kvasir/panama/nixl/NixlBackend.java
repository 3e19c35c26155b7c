package io.kvasir.panama.nixl;

import java.lang.foreign.MemorySegment;

/** The Java side's hold on a backend. The backend itself runs until its agent is closed. */
public final class NixlBackend implements AutoCloseable {
    private final NixlCapi capi;
    private final String plugin;
    private MemorySegment backend; // null once closed

    NixlBackend(NixlCapi capi, MemorySegment backend, String plugin) {
        this.capi = capi;
        this.backend = backend;
        this.plugin = plugin;
    }

    /**
     * Returns the plugin that this backend belongs to.
     *
     * @return its name, such as {@code UCX}
     */
    public String plugin() {
        return plugin;
    }

    /** Lets go of the handle. Does nothing the second time. */
    @Override
    public synchronized void close() {
        if (backend != null) {
            final MemorySegment ending = backend;
            backend = null;
            NixlStatus.check(
                    capi.call(NixlFunction.DESTROY_BACKEND, ending),
                    NixlFunction.DESTROY_BACKEND.symbol(),
                    "plugin=" + plugin);
        }
    }

    @Override
    public String toString() {
        return "NixlBackend[" + plugin + "]";
    }
}
