package io.kvasir.nats;

import io.kvasir.registry.FailureText;
import io.nats.client.Connection;
import io.nats.client.ErrorListener;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a server refuses on a connection without an answer to the call, such as a subject for which
 * the user has no permission: the call itself ends in nothing, or in a timeout. What is refused is
 * logged once by kind of subject, and the last one is kept for what is said of a call that failed
 * with it.
 *
 * <p>A subscription that is refused stays so for as long as the connection lasts, also where the
 * user is given the permission meanwhile. Where it is one without which the connection is of no use
 * ({@link #essential}), {@link LastingConnection} makes the connection again until it is not
 * refused, and it counts as refused until then.
 *
 * <p>Of one connection, also where that is made again. Thread-safe.
 */
public class ServerErrors implements ErrorListener {
    private static final Logger LOG = LoggerFactory.getLogger(ServerErrors.class);
    private static final int MAX_LOGGED = 64; // different ones
    private static final int MAX_UNSUBSCRIBED = 64;
    private static final String INBOX = "_inbox."; // where answers come; lower case as all here

    /** What follows the first four parts of a subject may be another in each message. */
    private static final Pattern REST_OF_SUBJECT =
            Pattern.compile("(\"[^\".]*(?:\\.[^\".]*){3})\\.[^\"]*\"");

    private static final Pattern NO_SUBSCRIPTION =
            Pattern.compile("permissions violation for subscription to \"([^\"]*)\".*");

    private record Refusal(String text, long atNs) {}

    /** Why a subject may not be subscribed to, and on which connection, counted from 0. */
    private record Unsubscribed(String text, int connection) {}

    private final Set<String> logged = ConcurrentHashMap.newKeySet();
    private final Map<String, Unsubscribed> unsubscribed = new ConcurrentHashMap<>(); // by subject
    private final AtomicInteger connections = new AtomicInteger();
    private volatile Runnable onUnsubscribed = () -> {};
    private volatile Refusal last; // null before the first
    private volatile Refusal lastFailure; // of a connection; null before the first

    @Override
    public void errorOccurred(Connection which, String error) {
        refused(which, error);
        final Matcher subscription = NO_SUBSCRIPTION.matcher(error.toLowerCase(Locale.ROOT));
        if (subscription.matches()) {
            unsubscribed(subscription.group(1), error);
        }
    }

    /**
     * Keeps what is refused, and logs it once.
     *
     * @param which by the server of this connection, or by the client for its sake
     * @param what in words
     */
    public void refused(Connection which, String what) {
        last = new Refusal(what, System.nanoTime());
        final String kind = REST_OF_SUBJECT.matcher(what).replaceAll("$1.…\"");
        if (logged.size() < MAX_LOGGED && logged.add(kind)) {
            LOG.warn(
                    "{} at {}: NATS refuses: {}",
                    which.getOptions().getConnectionName(),
                    where(which),
                    kind);
        }
    }

    private void unsubscribed(String subject, String error) {
        if (unsubscribed.size() < MAX_UNSUBSCRIBED || unsubscribed.containsKey(subject)) {
            unsubscribed.put(subject, new Unsubscribed(error, connections.get()));
        }
        onUnsubscribed.run();
    }

    @Override
    public void exceptionOccurred(Connection which, Exception exception) {
        LOG.debug("a connection to NATS fails", exception); // a connection that is lost
        Throwable cause = exception;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        lastFailure = new Refusal(FailureText.of(cause), System.nanoTime());
    }

    private static String where(Connection which) {
        final String address = NatsAccess.addressOf(which); // null while there is none
        return address == null
                ? NatsAccess.withoutUsers(which.getOptions().getServers().toString())
                : address;
    }

    /** Why no connection was made, as an addition to what the client says; may be empty. */
    String unconnected(Duration timeout) {
        final String refused = refusal(timeout.multipliedBy(2));
        if (!refused.isEmpty()) {
            return refusedText(refused);
        }
        final Refusal failure = lastFailure;
        return failure == null || isOlder(failure, timeout.multipliedBy(2))
                ? ""
                : " (" + failure.text + ")";
    }

    private static boolean isOlder(Refusal refusal, Duration than) {
        return System.nanoTime() - refusal.atNs > than.toNanos();
    }

    /**
     * Why a call failed.
     *
     * @param failure as the client has it
     * @param timeout how long a call waits for its answer
     * @return what it says in words, and what the server may have refused while it waited
     */
    public String reason(Exception failure, Duration timeout) {
        final String message = FailureText.of(failure);
        final String lasting = essential();
        final String refusal = lasting.isEmpty() ? refusal(timeout.multipliedBy(2)) : lasting;
        final String text = refusal.isEmpty() ? "" : refusedText(refusal);
        return message.contains(text) ? message : message + text;
    }

    private static String refusedText(String refusal) {
        return " (NATS refuses: " + refusal + ")";
    }

    /**
     * What the server has refused last.
     *
     * @param within how long ago at most
     * @return empty if nothing in that time
     */
    public String refusal(Duration within) {
        final Refusal refusal = last;
        return refusal == null || isOlder(refusal, within) ? "" : refusal.text;
    }

    /**
     * Why the server delivers nothing of some subjects, until it does.
     *
     * @param subjects as they were subscribed to
     * @return empty unless it refuses all of them
     */
    public String refusedAll(Collection<String> subjects) {
        String text = "";
        for (String subject : subjects) {
            final Unsubscribed refused = unsubscribed.get(subject.toLowerCase(Locale.ROOT));
            if (refused == null) {
                return "";
            }
            text = refused.text;
        }
        return text;
    }

    /**
     * Why the connection is of no use, until it is: here, why no call has an answer.
     *
     * @return empty if it is of use
     */
    protected String essential() {
        for (Map.Entry<String, Unsubscribed> each : unsubscribed.entrySet()) {
            if (each.getKey().startsWith(INBOX)) {
                return each.getValue().text;
            }
        }
        return "";
    }

    /** What to do when a subscription is refused; on a thread of the client. */
    void onUnsubscribed(Runnable action) {
        onUnsubscribed = action;
    }

    /** The connection is lost: to the next one other subjects may be open. */
    void disconnected() {
        connections.getAndIncrement();
    }

    /** The connection of now has had its answers: what former ones were refused is over. */
    void forgetFormer() {
        final int now = connections.get();
        unsubscribed.values().removeIf(each -> each.connection != now);
    }
}
