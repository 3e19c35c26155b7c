package io.kvasir.cli.commands;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.router.settings.Settings;

import org.slf4j.LoggerFactory;

/**
 * The log of {@code kvasir serve} by its settings. A logback configuration of the user's own, which
 * has no appender of this name, keeps its format.
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
        if (config.settings().source(GatewaySettings.LOG_LEVEL) != Settings.Source.DEFAULT) {
            level(config, debug);
        }
        if (config.get(GatewaySettings.LOG_FORMAT) == LogFormat.JSON
                && context.getLogger(Logger.ROOT_LOGGER_NAME).getAppender(APPENDER)
                        instanceof ConsoleAppender<ILoggingEvent> console) {
            final JsonLogEncoder encoder = new JsonLogEncoder(context);
            encoder.start();
            console.stop();
            console.setEncoder(encoder);
            console.start();
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
