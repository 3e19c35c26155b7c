package io.kvasir.cli.commands;

import ch.qos.logback.classic.pattern.ThrowableProxyConverter;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.Context;
import ch.qos.logback.core.encoder.EncoderBase;

import com.fasterxml.jackson.core.JsonGenerator;

import io.kvasir.cli.console.Json;

import org.slf4j.event.KeyValuePair;

import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * One JSON object a line, with the names that Logstash gave them and key-value pairs, such as
 * {@code request_id}, as members of their own. logback's encoder has the time in milliseconds, the
 * pairs in a list and the message unformatted.
 */
final class JsonLogEncoder extends EncoderBase<ILoggingEvent> {
    private static final byte[] NOTHING = {};
    private static final int MAX_MESSAGE = 4_000; // as in logback.xml

    private final ThrowableProxyConverter stackTrace = new ThrowableProxyConverter();

    JsonLogEncoder(Context context) {
        setContext(context);
        stackTrace.setContext(context);
        stackTrace.start();
    }

    @Override
    public byte[] headerBytes() {
        return NOTHING;
    }

    @Override
    public byte[] footerBytes() {
        return NOTHING;
    }

    @Override
    public byte[] encode(ILoggingEvent event) {
        final StringWriter line = new StringWriter(512);
        try (JsonGenerator json = Json.MAPPER.createGenerator(line)) {
            json.writeStartObject();
            json.writeStringField("@timestamp", event.getInstant().toString());
            json.writeStringField("level", event.getLevel().toString());
            json.writeStringField("logger_name", event.getLoggerName());
            json.writeStringField("thread_name", event.getThreadName());
            json.writeStringField("message", cut(event.getFormattedMessage()));
            final List<KeyValuePair> pairs = event.getKeyValuePairs();
            if (pairs != null) {
                for (KeyValuePair pair : pairs) {
                    json.writeStringField(pair.key, String.valueOf(pair.value));
                }
            }
            if (event.getThrowableProxy() != null) {
                json.writeStringField("stack_trace", stackTrace.convert(event));
            }
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory", e);
        }
        line.write('\n');
        // half of a surrogate pair, as a cut leaves it, is a question mark then
        return line.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static String cut(String message) {
        return message.length() <= MAX_MESSAGE ? message : message.substring(0, MAX_MESSAGE);
    }
}
