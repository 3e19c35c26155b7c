package io.kvasir.gateway.log;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.atomic.LongAdder;

/** The access log that is written now, if any: another one when the settings say so. Any thread. */
public final class AccessLogs implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AccessLogs.class);

    private final GatewayConfig config;
    private volatile AccessLog current; // null for none; written under this
    private String target; // guarded by this, as what follows
    private Object format;
    private boolean started;
    private final LongAdder dropped = new LongAdder();

    /**
     * Opens what the configuration asks for; nothing is written before {@link #start}.
     *
     * @throws GatewayException if it cannot be opened
     */
    public AccessLogs(GatewayConfig config) {
        this.config = config;
        current = AccessLog.of(config, dropped);
        remember();
    }

    private void remember() {
        target = config.get(GatewaySettings.ACCESS_LOG);
        format = config.get(GatewaySettings.ACCESS_LOG_FORMAT);
    }

    /** Begins to write. */
    public synchronized void start() {
        started = true;
        if (current != null) {
            current.start();
        }
    }

    /** Whether there is one. */
    public boolean isOn() {
        return current != null;
    }

    /** Has a request written, soon. Does not wait. */
    public void add(AccessEntry entry) {
        final AccessLog log = current;
        if (log != null) {
            log.add(entry);
        }
    }

    /** Lines that were not written. */
    public long dropped() {
        return dropped.sum();
    }

    /** Opens the file anew: the one of before may have been renamed. */
    public void reopen() {
        final AccessLog log = current;
        if (log != null) {
            log.reopen();
        }
    }

    /**
     * Checks that the log of other settings can be opened; leaves none open.
     *
     * @throws IllegalArgumentException if not
     */
    public synchronized void check(GatewayConfig wanted) {
        if (isOther(wanted)) {
            try {
                AccessLog.check(wanted);
            } catch (GatewayException e) {
                throw new IllegalArgumentException(e.getMessage(), e);
            }
        }
    }

    private boolean isOther(GatewayConfig wanted) {
        return !wanted.get(GatewaySettings.ACCESS_LOG).equals(target)
                || wanted.get(GatewaySettings.ACCESS_LOG_FORMAT) != format;
    }

    /** The configuration has other values. What was added before is written where it was. */
    public synchronized void settingsChanged() {
        if (!isOther(config)) {
            return;
        }
        final AccessLog before = current;
        try {
            final AccessLog next = AccessLog.of(config, dropped);
            if (next != null && started) {
                next.start();
            }
            current = next;
            remember();
        } catch (GatewayException e) {
            LOG.error("{}; the log of before is written on", e.getMessage());
            return;
        }
        if (before != null) {
            before.close();
        }
    }

    @Override
    public synchronized void close() {
        if (current != null) {
            current.close();
        }
    }

    /**
     * Checks that the log that a configuration asks for can be opened, and leaves none open.
     *
     * @throws GatewayException if not
     */
    public static void checkTarget(GatewayConfig config) {
        AccessLog.check(config);
    }
}
