package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.util.LogbackMDCAdapter;
import ch.qos.logback.core.AppenderBase;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/** The log before an output that blocks. */
class QueuedAppenderTest {
    private static final int TOO_MANY = 100;

    private final String caller = Thread.currentThread().getName() + " ";
    private final LoggerContext context = new LoggerContext();
    private final Logger log = context.getLogger("test");
    private final CountDownLatch writing = new CountDownLatch(1);
    private final CountDownLatch free = new CountDownLatch(1);
    private final Pipe pipe = new Pipe();
    private final QueuedAppender queued = new QueuedAppender(context, pipe);

    /** Takes the first line when it is free. */
    private final class Pipe extends AppenderBase<ILoggingEvent> {
        final List<String> lines = new CopyOnWriteArrayList<>();

        @Override
        protected void append(ILoggingEvent event) {
            writing.countDown();
            try {
                free.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            lines.add(event.getThreadName() + " " + event.getFormattedMessage());
        }
    }

    @BeforeEach
    void start() {
        context.setMDCAdapter(new LogbackMDCAdapter());
        pipe.setContext(context);
        pipe.start();
        queued.start();
        log.addAppender(queued);
    }

    @AfterEach
    void end() {
        free.countDown();
        context.stop();
    }

    @Test
    void whatLogsDoesNotWaitAndALineSaysWhatWasDropped() throws Exception {
        log.warn("line {}", 0);
        writing.await();
        for (int i = 1; i <= QueuedAppender.QUEUE_LENGTH + TOO_MANY; i++) {
            log.warn("line {}", i);
        }
        free.countDown();
        queued.flush();
        assertEquals(
                List.of(
                        caller + "line 0",
                        "kvasir-log 100 lines of the log were dropped: standard error was not read"
                                + " in time",
                        caller + "line 1"),
                pipe.lines.subList(0, 3));
        assertEquals(1 + 1 + QueuedAppender.QUEUE_LENGTH, pipe.lines.size());
    }

    @Test
    void aFlushHasAllWrittenThatWasAdded() {
        free.countDown();
        for (int i = 0; i < TOO_MANY; i++) {
            log.warn("line {}", i);
        }
        queued.flush();
        assertEquals(TOO_MANY, pipe.lines.size());
        assertEquals(caller + "line 99", pipe.lines.getLast());
    }

    @Test
    void aFlushBeforeAnOutputThatBlocksEnds() throws Exception {
        log.warn("line");
        writing.await();
        queued.flush();
        assertEquals(List.of(), pipe.lines);
    }
}
