package io.kvasir.panama;

import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The raw layer of transfers: calls that are made for each transfer, with pointers as numbers. Only
 * the safe layer calls it. All return NIXL's status.
 *
 * <p>Handles are fields of their own, as looking them up in a map would cost more than the call.
 * Only {@code xferDlistAddDesc} is linked as critical (22 to 9 ns): it neither blocks nor takes
 * long, which holds for no other.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class NixlTransferCalls {
    private static final long NO_OPTIONS = 0;

    private final MethodHandle addDesc;
    private final MethodHandle makeRequest;
    private final MethodHandle post;
    private final MethodHandle status;
    private final MethodHandle release;
    private final MethodHandle destroy;
    private final MethodHandle telemetry;
    private final MethodHandle setNotification;
    private final MethodHandle setHasNotification;
    private final MethodHandle getNotifications;
    private final MethodHandle notificationAgents;
    private final MethodHandle notificationAgent;
    private final MethodHandle notificationsOfAgent;
    private final MethodHandle notification;
    private final MethodHandle clearNotifications;
    private final MethodHandle send;

    private NixlTransferCalls(SymbolLookup lookup) {
        addDesc = bind(lookup, NixlFunction.XFER_DLIST_ADD_DESC, Linker.Option.critical(false));
        makeRequest = bind(lookup, NixlFunction.MAKE_XFER_REQ);
        post = bind(lookup, NixlFunction.POST_XFER_REQ);
        status = bind(lookup, NixlFunction.GET_XFER_STATUS);
        release = bind(lookup, NixlFunction.RELEASE_XFER_REQ);
        destroy = bind(lookup, NixlFunction.DESTROY_XFER_REQ);
        telemetry = bind(lookup, NixlFunction.GET_XFER_TELEMETRY);
        setNotification = bind(lookup, NixlFunction.OPT_ARGS_SET_NOTIF_MSG);
        setHasNotification = bind(lookup, NixlFunction.OPT_ARGS_SET_HAS_NOTIF);
        getNotifications = bind(lookup, NixlFunction.GET_NOTIFS);
        notificationAgents = bind(lookup, NixlFunction.NOTIF_MAP_SIZE);
        notificationAgent = bind(lookup, NixlFunction.NOTIF_MAP_GET_AGENT_AT);
        notificationsOfAgent = bind(lookup, NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE);
        notification = bind(lookup, NixlFunction.NOTIF_MAP_GET_NOTIF);
        clearNotifications = bind(lookup, NixlFunction.NOTIF_MAP_CLEAR);
        send = bind(lookup, NixlFunction.GEN_NOTIF);
    }

    /**
     * Binds every function.
     *
     * @throws java.util.NoSuchElementException if one is missing; the probe has asked before
     */
    static NixlTransferCalls bind(SymbolLookup lookup) {
        return new NixlTransferCalls(lookup);
    }

    private static MethodHandle bind(
            SymbolLookup lookup, NixlFunction function, Linker.Option... options) {
        return Linker.nativeLinker()
                .downcallHandle(
                        lookup.findOrThrow(function.symbol()), function.withAddresses(), options);
    }

    int addDesc(long list, long address, long length, long device) {
        try {
            return (int) addDesc.invokeExact(list, address, length, device);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.XFER_DLIST_ADD_DESC, t);
        }
    }

    int makeRequest(
            long agent,
            int operation,
            long localList,
            long localPlaces,
            long remoteList,
            long remotePlaces,
            long count,
            long out,
            long options) {
        try {
            return (int)
                    makeRequest.invokeExact(
                            agent,
                            operation,
                            localList,
                            localPlaces,
                            count,
                            remoteList,
                            remotePlaces,
                            count,
                            out,
                            options);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.MAKE_XFER_REQ, t);
        }
    }

    int post(long agent, long request) {
        try {
            return (int) post.invokeExact(agent, request, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.POST_XFER_REQ, t);
        }
    }

    int status(long agent, long request) {
        try {
            return (int) status.invokeExact(agent, request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_XFER_STATUS, t);
        }
    }

    int release(long agent, long request) {
        try {
            return (int) release.invokeExact(agent, request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.RELEASE_XFER_REQ, t);
        }
    }

    int destroy(long request) {
        try {
            return (int) destroy.invokeExact(request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.DESTROY_XFER_REQ, t);
        }
    }

    int telemetry(long agent, long request, long out) {
        try {
            return (int) telemetry.invokeExact(agent, request, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_XFER_TELEMETRY, t);
        }
    }

    int setNotification(long options, long data, long length) {
        try {
            return (int) setNotification.invokeExact(options, data, length);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.OPT_ARGS_SET_NOTIF_MSG, t);
        }
    }

    int setHasNotification(long options, boolean has) {
        try {
            return (int) setHasNotification.invokeExact(options, has);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.OPT_ARGS_SET_HAS_NOTIF, t);
        }
    }

    int getNotifications(long agent, long map) {
        try {
            return (int) getNotifications.invokeExact(agent, map, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_NOTIFS, t);
        }
    }

    int notificationAgents(long map, long out) {
        try {
            return (int) notificationAgents.invokeExact(map, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_SIZE, t);
        }
    }

    int notificationAgent(long map, long index, long out) {
        try {
            return (int) notificationAgent.invokeExact(map, index, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_AGENT_AT, t);
        }
    }

    int notificationsOfAgent(long map, long agentName, long out) {
        try {
            return (int) notificationsOfAgent.invokeExact(map, agentName, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE, t);
        }
    }

    int notification(long map, long agentName, long index, long dataOut, long lengthOut) {
        try {
            return (int) notification.invokeExact(map, agentName, index, dataOut, lengthOut);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_NOTIF, t);
        }
    }

    int clearNotifications(long map) {
        try {
            return (int) clearNotifications.invokeExact(map);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_CLEAR, t);
        }
    }

    int send(long agent, long peer, long data, long length) {
        try {
            return (int) send.invokeExact(agent, peer, data, length, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GEN_NOTIF, t);
        }
    }
}
