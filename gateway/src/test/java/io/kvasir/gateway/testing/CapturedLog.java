package io.kvasir.gateway.testing;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.AppenderBase;

import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** What is logged while this is open. */
public final class CapturedLog implements AutoCloseable {
    private final Logger captured;
    private final Logger leveled;
    private final Level before;
    private final List<ILoggingEvent> events = new CopyOnWriteArrayList<>();
    private final AppenderBase<ILoggingEvent> appender =
            new AppenderBase<>() {
                @Override
                protected void append(ILoggingEvent event) {
                    if (thread == null || thread.equals(event.getThreadName())) {
                        event.prepareForDeferredProcessing();
                        events.add(event);
                    }
                }
            };

    private final String thread;

    /**
     * Captures the log of the whole process: the test must be isolated, but where it asserts only
     * that something is there.
     *
     * @param level of Kvasir's own loggers; others stay at WARN, as shipped
     */
    public CapturedLog(Level level) {
        this(org.slf4j.Logger.ROOT_LOGGER_NAME, "io.kvasir", level, null);
    }

    /**
     * Captures what a class logs in this thread.
     *
     * @param level of its logger
     */
    public CapturedLog(Class<?> type, Level level) {
        this(type.getName(), type.getName(), level, Thread.currentThread().getName());
    }

    private CapturedLog(String captured, String leveled, Level level, String thread) {
        this.captured = (Logger) LoggerFactory.getLogger(captured);
        this.leveled = (Logger) LoggerFactory.getLogger(leveled);
        this.thread = thread;
        before = this.leveled.getLevel();
        this.leveled.setLevel(level);
        appender.setContext(this.captured.getLoggerContext());
        appender.start();
        this.captured.addAppender(appender);
    }

    /** The events from a level on. */
    public List<ILoggingEvent> from(Level level) {
        return events.stream().filter(event -> event.getLevel().isGreaterOrEqual(level)).toList();
    }

    /** What was logged from a level on, messages of failures included. */
    public List<String> textsFrom(Level level) {
        final List<String> texts = new ArrayList<>();
        for (ILoggingEvent event : from(level)) {
            texts.add(event.getFormattedMessage());
            for (IThrowableProxy t = event.getThrowableProxy(); t != null; t = t.getCause()) {
                texts.add(String.valueOf(t.getMessage()));
            }
        }
        return texts;
    }

    @Override
    public void close() {
        captured.detachAppender(appender);
        leveled.setLevel(before);
    }
}
