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

/** What is logged by all of the process while this is open. */
public final class CapturedLog implements AutoCloseable {
    private final Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    private final Logger own = (Logger) LoggerFactory.getLogger("io.kvasir");
    private final Level before = own.getLevel();
    private final List<ILoggingEvent> events = new CopyOnWriteArrayList<>();
    private final AppenderBase<ILoggingEvent> appender =
            new AppenderBase<>() {
                @Override
                protected void append(ILoggingEvent event) {
                    event.prepareForDeferredProcessing();
                    events.add(event);
                }
            };

    /**
     * @param level of Kvasir's own loggers; others stay at WARN, as shipped
     */
    public CapturedLog(Level level) {
        own.setLevel(level);
        appender.setContext(root.getLoggerContext());
        appender.start();
        root.addAppender(appender);
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
        root.detachAppender(appender);
        own.setLevel(before);
    }
}
