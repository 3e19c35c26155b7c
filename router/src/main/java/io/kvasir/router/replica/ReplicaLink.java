package io.kvasir.router.replica;

import java.util.function.Consumer;

/**
 * Best-effort broadcast of {@link ReplicaMessage}s between routers over the same workers. Messages
 * may be lost, doubled, late and out of order; none may be changed. A router may receive its own.
 *
 * <p>Any thread may call any method. {@link #send} never waits for the network.
 */
public interface ReplicaLink extends AutoCloseable {
    /**
     * Begins to deliver what others send; called once.
     *
     * @param receiver takes each message, on a thread of the link, one or several at a time;
     *     returns at once. Not called any more after {@link #close} has returned
     */
    void start(Consumer<ReplicaMessage> receiver);

    /**
     * Sends a message to all other routers.
     *
     * @param message what to send
     * @return false if it is known not to be sent: the link is closed, broken or full. True says
     *     nothing about arrival
     */
    boolean send(ReplicaMessage message);

    /**
     * Whether there was a connection to the others at any time; until then what is not sent does
     * not count as dropped.
     */
    default boolean wasConnected() {
        return true;
    }

    /**
     * Messages that the link itself has dropped, as they came faster than they were read.
     *
     * @return count since the start
     */
    long dropped();

    /**
     * Messages of others that could not be read.
     *
     * @return count since the start
     */
    default long unreadable() {
        return 0;
    }

    /**
     * Why messages do not go or come at this moment.
     *
     * @return empty if nothing is known to be wrong
     */
    default String problem() {
        return "";
    }

    /** Ends the link; idempotent. What was sent before may still go out. */
    @Override
    void close();
}
