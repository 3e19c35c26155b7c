package io.kvasir.nixl.exchange.zmq;

import org.zeromq.ZMQ;

import zmq.Msg;
import zmq.msg.MsgAllocator;

/**
 * Longest frame that a socket receives. JeroMQ takes a length of 2^63 or more for a negative one,
 * which is below its own limit, and its I/O thread would end by the array of that length: the
 * context would receive nothing any more. Such a frame is empty here; what follows it on its
 * connection is no message that is understood.
 */
public final class FrameLimit implements MsgAllocator {
    private final int maxBytes;

    private FrameLimit(int maxBytes) {
        this.maxBytes = maxBytes;
    }

    /**
     * Limits what a socket receives; before it is bound or connected.
     *
     * @param socket to limit
     * @param maxBytes of one frame; the connection of a longer one is closed
     */
    public static void set(ZMQ.Socket socket, int maxBytes) {
        socket.setMaxMsgSize(maxBytes);
        socket.setMsgAllocator(new FrameLimit(maxBytes));
    }

    @Override
    public Msg allocate(int size) {
        return new Msg(size < 0 || size > maxBytes ? 0 : size);
    }
}
