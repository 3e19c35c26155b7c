package io.kvasir.nats;

import io.kvasir.core.closing.Uninterrupted;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.ConnectionListener.Events;
import io.nats.client.ForceReconnectOptions;
import io.nats.client.Options;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Clock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A connection that is there again until it is closed here. The client makes a lost one again by
 * itself, but gives it up for ever where a server refuses it twice for the same reason, as one does
 * whose accounts are not loaded yet, or with credentials that have expired. A daemon thread makes
 * such a one anew, with pauses that grow ({@link ConnectPause}); the listener is notified of that
 * as of one that the client has made again. A server that hangs is left for another one where a
 * call had no answer ({@link #unanswered}). While the server refuses subscriptions without which
 * the connection is of no use ({@link ServerErrors#essential}), it is made again, with the same
 * pauses, as a permission that is given later is not for those that were refused.
 *
 * <p>Thread-safe.
 */
public final class LastingConnection {
    private static final Logger LOG = LoggerFactory.getLogger(LastingConnection.class);
    private static final long LEAVE_STEP_NS = TimeUnit.SECONDS.toNanos(5);

    private final Options.Builder options;
    private final ConnectionListener listener;
    private final Preparation preparation;
    private final ConnectPause.Sleeper sleeper;
    private volatile Connection connection; // null before the first
    private Thread renewing; // null while nothing is to be made anew; guarded by this
    private Thread readmitting; // null while nothing essential is refused; guarded by this
    private Thread asking; // null while no server is asked; guarded by this
    private long leftNs = System.nanoTime() - LEAVE_STEP_NS; // guarded by this
    private boolean closed; // guarded by this

    /** What a new connection needs before it is used, such as subscriptions. */
    public interface Preparation {
        /** Called with the first connection, and with each that is made anew. */
        void prepare(Connection made) throws InterruptedException;
    }

    private LastingConnection(
            Options.Builder options,
            ConnectionListener listener,
            Preparation preparation,
            ConnectPause.Sleeper sleeper) {
        this.options = options.connectionListener(this::onEvent);
        this.listener = listener;
        this.preparation = preparation;
        this.sleeper = sleeper;
    }

    /**
     * Connects once; from then on the connection lasts.
     *
     * @param options from {@link NatsAccess#options}, of this connection alone
     * @param listener gets the connection once it is there
     * @throws IOException if it cannot be made now, without users and passwords in its message
     */
    public static LastingConnection make(Options.Builder options, ConnectionListener listener)
            throws IOException, InterruptedException {
        return make(options, listener, _ -> {});
    }

    /**
     * The same where something is prepared.
     *
     * @param options from {@link NatsAccess#options}, of this connection alone
     * @param listener gets the connection once it is there
     * @param preparation of each connection, before it is used
     * @throws IOException if it cannot be made now, without users and passwords in its message
     */
    public static LastingConnection make(
            Options.Builder options, ConnectionListener listener, Preparation preparation)
            throws IOException, InterruptedException {
        return make(options, listener, preparation, TimeUnit.NANOSECONDS::sleep);
    }

    static LastingConnection make(
            Options.Builder options,
            ConnectionListener listener,
            Preparation preparation,
            ConnectPause.Sleeper sleeper)
            throws IOException, InterruptedException {
        final LastingConnection lasting =
                new LastingConnection(options, listener, preparation, sleeper);
        lasting.connect();
        return lasting;
    }

    /** The connection; closed while it is being made anew. */
    public Connection now() {
        return connection;
    }

    /** Whether a server is there at this moment. */
    public boolean isConnected() {
        return connection.getStatus() == Connection.Status.CONNECTED;
    }

    private void connect() throws IOException, InterruptedException {
        final ServerErrors former = connection == null ? null : errorsOrNull(connection);
        if (former != null) {
            former.disconnected();
        }
        final Connection made = NatsAccess.connect(options);
        try {
            preparation.prepare(made);
        } catch (IllegalStateException e) {
            made.close();
            throw new IOException("the connection was closed at once", e);
        }
        use(made);
    }

    private synchronized void use(Connection made) throws InterruptedException {
        connection = made;
        if (closed) {
            made.close();
        } else if (isGivenUp()) {
            renew(); // its event came before it was used
        } else {
            heedRefusals();
        }
    }

    private static ServerErrors errorsOrNull(Connection of) {
        return of.getOptions().getErrorListener() instanceof ServerErrors errors ? errors : null;
    }

    private void onEvent(Connection which, Events event) {
        if (!which.equals(connection)) {
            return; // it is only tried, or no longer used
        }
        final ServerErrors errors = errorsOrNull(which);
        if (event == Events.DISCONNECTED && errors != null) {
            errors.disconnected();
        }
        say(which, event);
        if (event == Events.CLOSED) {
            renew();
        }
    }

    private synchronized boolean isGivenUp() {
        return !closed && connection.getStatus() == Connection.Status.CLOSED;
    }

    /** One thread at a time: it goes on where the one that it makes is closed, too. */
    private synchronized void renew() {
        if (isGivenUp() && renewing == null) {
            renewing = Thread.ofPlatform().daemon().name("kvasir-nats-again").start(this::run);
        }
    }

    private void run() {
        LOG.warn(
                "{} was refused: {}; it is tried again without an end",
                connection.getOptions().getConnectionName(),
                connection.getLastError());
        final ConnectPause pause = new ConnectPause(sleeper);
        try {
            while (isToBeMade()) {
                connectAgain(pause);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** Once false, the next one that is given up has another thread. */
    private synchronized boolean isToBeMade() {
        if (!isGivenUp()) {
            renewing = null;
        }
        return renewing != null;
    }

    private void connectAgain(ConnectPause pause) throws InterruptedException {
        try {
            connect();
        } catch (IOException e) {
            LOG.debug("it is still refused", e);
        }
        if (isGivenUp()) {
            pause.await();
            return;
        }
        say(connection, Events.RECONNECTED);
        say(connection, Events.RESUBSCRIBED);
    }

    private void say(Connection which, Events event) {
        listener.connectionEvent(which, event, Clock.systemUTC().millis(), null);
    }

    // -- subscriptions that are refused

    private void heedRefusals() {
        final ServerErrors errors = errorsOrNull(connection);
        if (errors != null) {
            errors.onUnsubscribed(() -> readmit(errors));
            readmit(errors); // it may have been refused before
        }
    }

    private synchronized void readmit(ServerErrors errors) {
        if (!closed && readmitting == null && !errors.essential().isEmpty()) {
            readmitting =
                    Thread.ofPlatform()
                            .daemon()
                            .name("kvasir-nats-admit")
                            .start(() -> connectUntilAdmitted(errors));
        }
    }

    private void connectUntilAdmitted(ServerErrors errors) {
        final ConnectPause pause = new ConnectPause(sleeper);
        boolean answered = false;
        try {
            while (!isClosed()) {
                pause.await(); // in which the client says what was refused
                if (answered && isAdmitted(errors)) {
                    LOG.info(
                            "{}: NATS no longer refuses what it needs",
                            connection.getOptions().getConnectionName());
                    say(connection, Events.RESUBSCRIBED);
                    return;
                }
                answered = isSubscribedAgain();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private synchronized boolean isClosed() {
        return closed;
    }

    private synchronized boolean isAdmitted(ServerErrors errors) {
        errors.forgetFormer();
        if (!errors.essential().isEmpty()) {
            return false;
        }
        readmitting = null;
        return true;
    }

    /** Whether all was subscribed to anew, and the server has answered since. */
    private boolean isSubscribedAgain() throws InterruptedException {
        final Connection refused = connection;
        if (refused.getStatus() != Connection.Status.CONNECTED) {
            return false; // it is being made again
        }
        try {
            refused.forceReconnect(ForceReconnectOptions.FORCE_CLOSE_INSTANCE);
        } catch (IOException e) {
            LOG.debug("it is tried again", e);
        }
        return isConnected() && answers(refused);
    }

    // -- a server that hangs

    /**
     * A call had no answer: the server is asked for a sign of life, and left for another one if it
     * gives none within the connection's timeout, at most each 5 s. One that is only slow at what
     * it was called for answers that. Returns at once; a daemon thread asks.
     */
    public synchronized void unanswered() {
        if (!closed
                && asking == null
                && isConnected()
                && System.nanoTime() - leftNs >= LEAVE_STEP_NS) {
            asking =
                    Thread.ofPlatform()
                            .daemon()
                            .name("kvasir-nats-ask")
                            .start(() -> leaveUnlessAnswered(connection));
        }
    }

    private void leaveUnlessAnswered(Connection asked) {
        final long reconnects = asked.getStatistics().getReconnects();
        try {
            if (!answers(asked) && asked.getStatistics().getReconnects() == reconnects) {
                leave(asked);
            }
        } catch (IOException e) {
            LOG.debug("a server that hangs is not left", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        } finally {
            asked();
        }
    }

    private synchronized void asked() {
        asking = null;
    }

    private static boolean answers(Connection asked) throws InterruptedException {
        try {
            asked.flush(asked.getOptions().getConnectionTimeout());
            return true;
        } catch (TimeoutException e) {
            return false;
        } catch (IllegalStateException e) {
            return true; // it is closed: no server is to be left
        }
    }

    private void leave(Connection hung) throws IOException, InterruptedException {
        synchronized (this) {
            if (closed || !isConnected()) {
                return; // the client has left it
            }
            leftNs = System.nanoTime();
        }
        LOG.warn(
                "{} at {}: NATS does not answer; another server is used, or a new connection",
                hung.getOptions().getConnectionName(),
                NatsAccess.addressOf(hung));
        hung.forceReconnect(ForceReconnectOptions.FORCE_CLOSE_INSTANCE);
    }

    /**
     * Closes it for good; nothing is made anew from then on. A thread that is interrupted closes it
     * too, and stays interrupted.
     */
    public void close() {
        final Connection last;
        synchronized (this) {
            closed = true;
            last = connection;
            if (renewing != null) {
                renewing.interrupt();
            }
            if (asking != null) {
                asking.interrupt();
            }
            if (readmitting != null) {
                readmitting.interrupt();
            }
        }
        Uninterrupted.call( // else the client would stop half way
                () -> {
                    last.close();
                    return null;
                });
    }
}
