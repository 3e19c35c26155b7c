package io.kvasir.panama.nixl;

import io.kvasir.panama.libc.NativeText;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A NIXL agent and the backends it made. Owns the native handles; calls are serialised by its
 * monitor, so {@link #close()} never runs beneath another call. The calls here belong to start-up:
 * they may load plugins and take hundreds of milliseconds.
 */
public final class NixlAgent implements AutoCloseable {
    private final NixlCapi capi;
    private final NixlTransferCalls calls;
    private final String name;
    private final List<NixlBackend> backends = new ArrayList<>();
    private MemorySegment agent; // null once closed
    private NixlTransfers transfers; // null until asked for

    NixlAgent(NixlCapi capi, NixlTransferCalls calls, MemorySegment agent, String name) {
        this.capi = capi;
        this.calls = calls;
        this.agent = agent;
        this.name = name;
    }

    /**
     * Returns the name the agent was made with.
     *
     * @return the name peers use
     */
    public String name() {
        return name;
    }

    /**
     * Lists the plugins whose files lie in NIXL's plugin folder. Loads none, so a listed plugin may
     * still lack a library or a device; only {@link #createBackend} proves it.
     *
     * @return plugin names in NIXL's order
     * @throws IllegalStateException if the agent is closed
     * @throws NixlException if NIXL fails
     */
    public synchronized List<String> availablePlugins() {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = NativeText.allocatePointer(arena);
            call(NixlFunction.GET_AVAILABLE_PLUGINS, handle(), out);
            final MemorySegment list = NativeText.pointer(out);
            try {
                return strings(arena, list);
            } finally {
                capi.call(NixlFunction.DESTROY_STRING_LIST, list);
            }
        }
    }

    private List<String> strings(Arena arena, MemorySegment list) {
        final long size = size(arena, NixlFunction.STRING_LIST_SIZE, list);
        final MemorySegment out = NativeText.allocatePointer(arena);
        final List<String> strings = new ArrayList<>();
        for (long i = 0; i < size; i++) {
            check(
                    NixlFunction.STRING_LIST_GET,
                    capi.call(NixlFunction.STRING_LIST_GET, list, i, out));
            strings.add(NativeText.string(out));
        }
        return List.copyOf(strings);
    }

    /**
     * Loads a plugin and asks what it can do. Loading UCX takes about half a second.
     *
     * @param plugin its name, as {@link #availablePlugins()} gives it
     * @return the kinds of memory it moves and the parameters of its backend
     * @throws IllegalStateException if the agent is closed
     * @throws NixlException if the plugin cannot be loaded
     */
    public synchronized NixlPlugin plugin(String plugin) {
        final String checked = NativeText.checkName(plugin, "plugin name");
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment memoriesOut = NativeText.allocatePointer(arena);
            final MemorySegment paramsOut = NativeText.allocatePointer(arena);
            check(
                    NixlFunction.GET_PLUGIN_PARAMS,
                    capi.call(
                            NixlFunction.GET_PLUGIN_PARAMS,
                            handle(),
                            arena.allocateFrom(checked),
                            memoriesOut,
                            paramsOut),
                    "plugin=" + checked);
            final MemorySegment memories = NativeText.pointer(memoriesOut);
            final MemorySegment params = NativeText.pointer(paramsOut);
            try {
                return new NixlPlugin(
                        checked, memories(arena, memories), parameters(arena, params));
            } finally {
                capi.call(NixlFunction.DESTROY_MEM_LIST, memories);
                capi.call(NixlFunction.DESTROY_PARAMS, params);
            }
        }
    }

    private List<NixlMemory> memories(Arena arena, MemorySegment list) {
        final long size = size(arena, NixlFunction.MEM_LIST_SIZE, list);
        final MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
        final List<NixlMemory> memories = new ArrayList<>();
        for (long i = 0; i < size; i++) {
            check(NixlFunction.MEM_LIST_GET, capi.call(NixlFunction.MEM_LIST_GET, list, i, out));
            memories.add(NixlMemory.of(out.get(ValueLayout.JAVA_INT, 0)));
        }
        return List.copyOf(memories);
    }

    private Map<String, String> parameters(Arena arena, MemorySegment params) {
        final Map<String, String> parameters = new LinkedHashMap<>();
        final MemorySegment flag = arena.allocate(ValueLayout.JAVA_BOOLEAN);
        call(NixlFunction.PARAMS_IS_EMPTY, params, flag);
        if (flag.get(ValueLayout.JAVA_BOOLEAN, 0)) {
            return Map.of(); // an iterator at its end answers like one at its last pair
        }
        final MemorySegment out = NativeText.allocatePointer(arena);
        call(NixlFunction.PARAMS_CREATE_ITERATOR, params, out);
        final MemorySegment iterator = NativeText.pointer(out);
        try {
            final MemorySegment key = NativeText.allocatePointer(arena);
            final MemorySegment value = NativeText.allocatePointer(arena);
            do {
                check(
                        NixlFunction.PARAMS_ITERATOR_NEXT,
                        capi.call(NixlFunction.PARAMS_ITERATOR_NEXT, iterator, key, value, flag));
                parameters.put(NativeText.string(key), NativeText.string(value));
            } while (flag.get(ValueLayout.JAVA_BOOLEAN, 0));
        } finally {
            capi.call(NixlFunction.PARAMS_DESTROY_ITERATOR, iterator);
        }
        return Collections.unmodifiableMap(parameters);
    }

    /**
     * Starts a plugin's backend in this agent: the proof that the plugin works here. Once per
     * plugin.
     *
     * @param plugin its name
     * @param parameters the backend's parameters; those not named keep their default
     * @return the backend, closed with this agent at the latest
     * @throws IllegalStateException if the agent is closed
     * @throws NixlException if the plugin cannot be loaded, a device is missing or it is started
     *     already
     */
    public synchronized NixlBackend createBackend(String plugin, Map<String, String> parameters) {
        final String checked = NativeText.checkName(plugin, "plugin name");
        parameters.forEach(
                (key, value) -> {
                    NativeText.checkName(key, "parameter name");
                    NativeText.checkValue(value, "value of " + key);
                });
        final MemorySegment owner = handle();
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = NativeText.allocatePointer(arena);
            check(NixlFunction.CREATE_PARAMS, capi.call(NixlFunction.CREATE_PARAMS, out));
            final MemorySegment params = NativeText.pointer(out);
            try {
                parameters.forEach(
                        (key, value) ->
                                check(
                                        NixlFunction.PARAMS_ADD,
                                        capi.call(
                                                NixlFunction.PARAMS_ADD,
                                                params,
                                                arena.allocateFrom(key),
                                                arena.allocateFrom(value))));
                final MemorySegment cPlugin = arena.allocateFrom(checked);
                check(
                        NixlFunction.CREATE_BACKEND,
                        capi.call(NixlFunction.CREATE_BACKEND, owner, cPlugin, params, out),
                        "plugin=" + checked);
            } finally {
                capi.call(NixlFunction.DESTROY_PARAMS, params);
            }
            final NixlBackend backend = new NixlBackend(capi, NativeText.pointer(out), checked);
            backends.add(backend);
            return backend;
        }
    }

    /**
     * What this agent moves, always the same object.
     *
     * @return for the thread that owns the agent, which is also the one to close it then
     * @throws IllegalStateException if the agent is closed
     * @throws NixlException if NIXL fails
     */
    public synchronized NixlTransfers transfers() {
        if (transfers == null) {
            transfers = new NixlTransfers(capi, calls, handle(), name);
        }
        return transfers;
    }

    private long size(Arena arena, NixlFunction function, MemorySegment list) {
        final MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
        call(function, list, out);
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private void call(NixlFunction function, MemorySegment a, MemorySegment b) {
        check(function, capi.call(function, a, b));
    }

    private void check(NixlFunction function, int status) {
        NixlStatus.check(status, function.symbol(), "agent=" + name);
    }

    private void check(NixlFunction function, int status, String subject) {
        NixlStatus.check(status, function.symbol(), "agent=" + name + ", " + subject);
    }

    private MemorySegment handle() {
        if (agent == null) {
            throw new IllegalStateException("agent " + name + " is closed");
        }
        return agent;
    }

    /**
     * Ends the agent, its backends first. Does nothing the second time.
     *
     * @throws NixlException if NIXL fails to end the agent or a backend; all are given up all the
     *     same
     */
    @Override
    public synchronized void close() {
        if (agent == null) {
            return;
        }
        final MemorySegment ending = agent;
        agent = null;
        RuntimeException first = null;
        if (transfers != null) {
            first = failed(first, transfers::close);
        }
        for (NixlBackend backend : backends) {
            first = failed(first, backend::close);
        }
        backends.clear();
        first =
                failed(
                        first,
                        () ->
                                check(
                                        NixlFunction.DESTROY_AGENT,
                                        capi.call(NixlFunction.DESTROY_AGENT, ending)));
        if (first != null) {
            throw first;
        }
    }

    /** Does a step of the end; the first failure is thrown once all steps are done. */
    private static RuntimeException failed(RuntimeException first, Runnable step) {
        try {
            step.run();
        } catch (RuntimeException e) {
            if (first == null) {
                return e;
            }
            first.addSuppressed(e);
        }
        return first;
    }

    @Override
    public String toString() {
        return "NixlAgent[" + name + "]";
    }
}
