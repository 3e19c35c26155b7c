package io.kvasir.cli.commands;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.Appender;
import ch.qos.logback.core.ConsoleAppender;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.router.settings.Settings;

import org.slf4j.LoggerFactory;

/**
 * The log of {@code kvasir serve} by its settings, and behind a queue: nothing that serves requests
 * waits for the reader of standard error. Other commands write their lines at once, in the order of
 * what they print themselves. A logback configuration of the user's own, which has no appender of
 * this name, stays as it is.
 */
final class LogSetup {
    private static final String APPENDER = "stderr";
    private static final String OWN = "io.kvasir";

    /**
     * Writes to standard error past this log what the gateway logs itself. Kept here, as the JDK
     * forgets the level of a logger that nothing refers to.
     */
    private static final java.util.logging.Logger EXPORTER =
            java.util.logging.Logger.getLogger("io.opentelemetry.exporter");

    private LogSetup() {}

    /**
     * Applies what is set.
     *
     * @param debug whether the command line asks for the debug log, which wins over the level
     */
    static void apply(GatewayConfig config, boolean debug) {
        EXPORTER.setLevel(java.util.logging.Level.OFF);
        if (!(LoggerFactory.getILoggerFactory() instanceof LoggerContext context)) {
            return;
        }
        final QueuedAppender queued = queuedOrNull(context);
        if (config.settings().source(GatewaySettings.LOG_LEVEL) != Settings.Source.DEFAULT) {
            level(config, debug);
        }
        if (config.get(GatewaySettings.LOG_FORMAT) == LogFormat.JSON
                && queued != null
                && queued.output() instanceof ConsoleAppender<ILoggingEvent> console) {
            final JsonLogEncoder encoder = new JsonLogEncoder(context);
            encoder.start();
            console.stop();
            console.setEncoder(encoder);
            console.start();
        }
    }

    /** Has what is logged from now on go through a queue; null where the appender is another. */
    private static QueuedAppender queuedOrNull(LoggerContext context) {
        final Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
        final Appender<ILoggingEvent> appender = root.getAppender(APPENDER);
        if (appender instanceof QueuedAppender queued) {
            return queued;
        }
        if (!(appender instanceof ConsoleAppender<ILoggingEvent> console)) {
            return null;
        }
        final QueuedAppender queued = new QueuedAppender(context, console);
        queued.setName(APPENDER);
        queued.start();
        root.addAppender(queued);
        root.detachAppender(console);
        return queued;
    }

    /** Waits until what was logged is written, as far as that does not take long. */
    static void flush() {
        if (LoggerFactory.getILoggerFactory() instanceof LoggerContext context
                && context.getLogger(Logger.ROOT_LOGGER_NAME).getAppender(APPENDER)
                        instanceof QueuedAppender queued) {
            queued.flush();
        }
    }

    /**
     * Has the log be of the level that is set.
     *
     * @param debug whether the command line asks for the debug log, which wins
     */
    static void level(GatewayConfig config, boolean debug) {
        if (!debug && LoggerFactory.getILoggerFactory() instanceof LoggerContext context) {
            context.getLogger(OWN)
                    .setLevel(Level.toLevel(config.get(GatewaySettings.LOG_LEVEL).name()));
        }
    }
}
