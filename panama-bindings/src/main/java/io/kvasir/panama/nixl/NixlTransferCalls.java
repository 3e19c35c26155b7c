package io.kvasir.panama.nixl;

import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The raw layer of transfers: calls that are made for each transfer, with pointers as numbers. Only
 * the safe layer calls it. All return NIXL's status.
 *
 * <p>Handles are constants that take the function's address as an argument: the compiler sees
 * through a constant handle only, and an address, unlike a handle, may differ from library to
 * library. Only {@code xferDlistAddDesc} is linked as critical (22 to 9 ns): it neither blocks nor
 * takes long, which holds for no other.
 */
@SuppressWarnings("restricted") // linking a downcall is what this class is for
final class NixlTransferCalls {
    private static final long NO_OPTIONS = 0;

    private static final MethodHandle ADD_DESC =
            link(NixlFunction.XFER_DLIST_ADD_DESC, Linker.Option.critical(false));
    private static final MethodHandle MAKE_REQUEST = link(NixlFunction.MAKE_XFER_REQ);
    private static final MethodHandle POST = link(NixlFunction.POST_XFER_REQ);
    private static final MethodHandle STATUS = link(NixlFunction.GET_XFER_STATUS);
    private static final MethodHandle RELEASE = link(NixlFunction.RELEASE_XFER_REQ);
    private static final MethodHandle DESTROY = link(NixlFunction.DESTROY_XFER_REQ);
    private static final MethodHandle TELEMETRY = link(NixlFunction.GET_XFER_TELEMETRY);
    private static final MethodHandle SET_NOTIFICATION = link(NixlFunction.OPT_ARGS_SET_NOTIF_MSG);
    private static final MethodHandle SET_HAS_NOTIFICATION =
            link(NixlFunction.OPT_ARGS_SET_HAS_NOTIF);
    private static final MethodHandle GET_NOTIFICATIONS = link(NixlFunction.GET_NOTIFS);
    private static final MethodHandle NOTIFICATION_AGENTS = link(NixlFunction.NOTIF_MAP_SIZE);
    private static final MethodHandle NOTIFICATION_AGENT =
            link(NixlFunction.NOTIF_MAP_GET_AGENT_AT);
    private static final MethodHandle NOTIFICATIONS_OF_AGENT =
            link(NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE);
    private static final MethodHandle NOTIFICATION = link(NixlFunction.NOTIF_MAP_GET_NOTIF);
    private static final MethodHandle CLEAR_NOTIFICATIONS = link(NixlFunction.NOTIF_MAP_CLEAR);
    private static final MethodHandle SEND = link(NixlFunction.GEN_NOTIF);

    private final MemorySegment addDesc;
    private final MemorySegment makeRequest;
    private final MemorySegment post;
    private final MemorySegment status;
    private final MemorySegment release;
    private final MemorySegment destroy;
    private final MemorySegment telemetry;
    private final MemorySegment setNotification;
    private final MemorySegment setHasNotification;
    private final MemorySegment getNotifications;
    private final MemorySegment notificationAgents;
    private final MemorySegment notificationAgent;
    private final MemorySegment notificationsOfAgent;
    private final MemorySegment notification;
    private final MemorySegment clearNotifications;
    private final MemorySegment send;

    private NixlTransferCalls(SymbolLookup lookup) {
        addDesc = lookup.findOrThrow(NixlFunction.XFER_DLIST_ADD_DESC.symbol());
        makeRequest = lookup.findOrThrow(NixlFunction.MAKE_XFER_REQ.symbol());
        post = lookup.findOrThrow(NixlFunction.POST_XFER_REQ.symbol());
        status = lookup.findOrThrow(NixlFunction.GET_XFER_STATUS.symbol());
        release = lookup.findOrThrow(NixlFunction.RELEASE_XFER_REQ.symbol());
        destroy = lookup.findOrThrow(NixlFunction.DESTROY_XFER_REQ.symbol());
        telemetry = lookup.findOrThrow(NixlFunction.GET_XFER_TELEMETRY.symbol());
        setNotification = lookup.findOrThrow(NixlFunction.OPT_ARGS_SET_NOTIF_MSG.symbol());
        setHasNotification = lookup.findOrThrow(NixlFunction.OPT_ARGS_SET_HAS_NOTIF.symbol());
        getNotifications = lookup.findOrThrow(NixlFunction.GET_NOTIFS.symbol());
        notificationAgents = lookup.findOrThrow(NixlFunction.NOTIF_MAP_SIZE.symbol());
        notificationAgent = lookup.findOrThrow(NixlFunction.NOTIF_MAP_GET_AGENT_AT.symbol());
        notificationsOfAgent = lookup.findOrThrow(NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE.symbol());
        notification = lookup.findOrThrow(NixlFunction.NOTIF_MAP_GET_NOTIF.symbol());
        clearNotifications = lookup.findOrThrow(NixlFunction.NOTIF_MAP_CLEAR.symbol());
        send = lookup.findOrThrow(NixlFunction.GEN_NOTIF.symbol());
    }

    /**
     * Finds every function.
     *
     * @throws java.util.NoSuchElementException if one is missing; the probe has asked before
     */
    static NixlTransferCalls bind(SymbolLookup lookup) {
        return new NixlTransferCalls(lookup);
    }

    private static MethodHandle link(NixlFunction function, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(function.withAddresses(), options);
    }

    int addDesc(long list, long address, long length, long device) {
        try {
            return (int) ADD_DESC.invokeExact(addDesc, list, address, length, device);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.XFER_DLIST_ADD_DESC, t);
        }
    }

    int makeRequest(
            long agent,
            int operation,
            long localList,
            long localIndices,
            long remoteList,
            long remoteIndices,
            long count,
            long out,
            long options) {
        try {
            return (int)
                    MAKE_REQUEST.invokeExact(
                            makeRequest,
                            agent,
                            operation,
                            localList,
                            localIndices,
                            count,
                            remoteList,
                            remoteIndices,
                            count,
                            out,
                            options);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.MAKE_XFER_REQ, t);
        }
    }

    int post(long agent, long request) {
        try {
            return (int) POST.invokeExact(post, agent, request, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.POST_XFER_REQ, t);
        }
    }

    int status(long agent, long request) {
        try {
            return (int) STATUS.invokeExact(status, agent, request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_XFER_STATUS, t);
        }
    }

    int release(long agent, long request) {
        try {
            return (int) RELEASE.invokeExact(release, agent, request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.RELEASE_XFER_REQ, t);
        }
    }

    int destroy(long request) {
        try {
            return (int) DESTROY.invokeExact(destroy, request);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.DESTROY_XFER_REQ, t);
        }
    }

    int telemetry(long agent, long request, long out) {
        try {
            return (int) TELEMETRY.invokeExact(telemetry, agent, request, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_XFER_TELEMETRY, t);
        }
    }

    int setNotification(long options, long data, long length) {
        try {
            return (int) SET_NOTIFICATION.invokeExact(setNotification, options, data, length);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.OPT_ARGS_SET_NOTIF_MSG, t);
        }
    }

    int setHasNotification(long options, boolean has) {
        try {
            return (int) SET_HAS_NOTIFICATION.invokeExact(setHasNotification, options, has);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.OPT_ARGS_SET_HAS_NOTIF, t);
        }
    }

    int getNotifications(long agent, long map) {
        try {
            return (int) GET_NOTIFICATIONS.invokeExact(getNotifications, agent, map, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GET_NOTIFS, t);
        }
    }

    int notificationAgents(long map, long out) {
        try {
            return (int) NOTIFICATION_AGENTS.invokeExact(notificationAgents, map, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_SIZE, t);
        }
    }

    int notificationAgent(long map, long index, long out) {
        try {
            return (int) NOTIFICATION_AGENT.invokeExact(notificationAgent, map, index, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_AGENT_AT, t);
        }
    }

    int notificationsOfAgent(long map, long agentName, long out) {
        try {
            return (int)
                    NOTIFICATIONS_OF_AGENT.invokeExact(notificationsOfAgent, map, agentName, out);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_NOTIFS_SIZE, t);
        }
    }

    int notification(long map, long agentName, long index, long dataOut, long lengthOut) {
        try {
            return (int)
                    NOTIFICATION.invokeExact(
                            notification, map, agentName, index, dataOut, lengthOut);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_GET_NOTIF, t);
        }
    }

    int clearNotifications(long map) {
        try {
            return (int) CLEAR_NOTIFICATIONS.invokeExact(clearNotifications, map);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.NOTIF_MAP_CLEAR, t);
        }
    }

    int send(long agent, long peer, long data, long length) {
        try {
            return (int) SEND.invokeExact(send, agent, peer, data, length, NO_OPTIONS);
        } catch (Throwable t) {
            throw NixlCapi.mustNotThrow(NixlFunction.GEN_NOTIF, t);
        }
    }
}
