package io.kvasir.gateway.log;

import com.fasterxml.jackson.core.JsonGenerator;

import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.openai.UsageReader;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** How a line of the access log is written. */
enum AccessLogFormat {
    /** The common log format, and further fields as name=value. */
    TEXT {
        @Override
        void write(AccessEntry entry, ByteArrayOutputStream out) {
            final RequestRecord request = entry.request();
            final StringBuilder line = new StringBuilder(256);
            line.append(entry.remote()).append(" - - [");
            COMMON.formatTo(Instant.ofEpochMilli(entry.timeMs()), line);
            line.append("] \"").append(entry.method()).append(' ');
            line.append(request.endpoint().path).append(' ').append(entry.protocol());
            line.append("\" ").append(entry.status()).append(' ').append(entry.bytes());
            named(line, "id", request.id());
            field(line, "route", request.endpoint().label);
            named(line, "worker", request.worker());
            field(line, "mode", request.mode());
            named(line, "model", request.model());
            field(line, "duration_ms", millis(entry.durationNs()));
            field(line, "ttfb_ms", millis(entry.firstByteNs()));
            field(line, "tokens_in", known(request.promptTokens()));
            field(line, "tokens_out", known(request.outputTokens()));
            if (request.queuedNs() >= 0) {
                field(line, "queue_ms", millis(request.queuedNs()));
            }
            out.writeBytes(line.append('\n').toString().getBytes(StandardCharsets.UTF_8));
        }

        private static void field(StringBuilder line, String name, Object value) {
            line.append(' ').append(name).append('=').append(value == null ? "-" : value);
        }

        // of a name that others choose: in quotes where it would not be one word
        private static void named(StringBuilder line, String name, String value) {
            final String text = value == null ? null : LogText.of(value);
            field(line, name, text == null || isWord(text) ? text : quoted(value));
        }

        private static boolean isWord(String text) {
            return !text.isEmpty()
                    && text.codePoints()
                            .noneMatch(c -> Character.isSpaceChar(c) || c == '"' || c == '=');
        }

        private static String quoted(String value) {
            return '"' + LogText.of(value.replace("\\", "\\\\").replace("\"", "\\\"")) + '"';
        }
    },

    /** One JSON object. */
    JSON {
        @Override
        void write(AccessEntry entry, ByteArrayOutputStream out) {
            final RequestRecord request = entry.request();
            final StringWriter line = new StringWriter(256);
            try (JsonGenerator json = Json.FACTORY.createGenerator(line)) {
                json.writeStartObject();
                json.writeStringField(
                        "@timestamp", Instant.ofEpochMilli(entry.timeMs()).toString());
                json.writeStringField("request_id", request.id());
                json.writeStringField("remote", entry.remote());
                json.writeStringField("method", entry.method());
                json.writeStringField("route", request.endpoint().label);
                json.writeStringField("protocol", entry.protocol());
                json.writeNumberField("status", entry.status());
                json.writeNumberField("bytes", entry.bytes());
                json.writeStringField("worker", request.worker());
                json.writeStringField("mode", request.mode());
                json.writeStringField("model", request.model());
                json.writeFieldName("duration_ms");
                json.writeNumber(millis(entry.durationNs()));
                json.writeFieldName("ttfb_ms");
                json.writeNumber(millis(entry.firstByteNs()));
                count(json, "tokens_in", request.promptTokens());
                count(json, "tokens_out", request.outputTokens());
                if (request.queuedNs() >= 0) {
                    json.writeFieldName("queue_ms");
                    json.writeNumber(millis(request.queuedNs()));
                }
                json.writeEndObject();
            } catch (IOException e) {
                throw new UncheckedIOException("writing to memory", e);
            }
            line.write('\n');
            // half of a surrogate pair is a question mark then
            out.writeBytes(line.toString().getBytes(StandardCharsets.UTF_8));
        }

        private static void count(JsonGenerator json, String name, int value) throws IOException {
            json.writeFieldName(name);
            if (value == UsageReader.UNKNOWN) {
                json.writeNull();
            } else {
                json.writeNumber(value);
            }
        }
    };

    private static final DateTimeFormatter COMMON =
            DateTimeFormatter.ofPattern("dd/MMM/yyyy:HH:mm:ss Z", Locale.ENGLISH)
                    .withZone(ZoneId.systemDefault());

    private static final long NS_PER_US = 1_000;

    static AccessLogFormat of(LogFormat format) {
        return switch (format) {
            case TEXT -> TEXT;
            case JSON -> JSON;
        };
    }

    /** Appends one line. */
    abstract void write(AccessEntry entry, ByteArrayOutputStream out);

    /** With three decimals, as JSON has it. */
    private static String millis(long ns) {
        final long us = Math.max(0, ns) / NS_PER_US;
        return us / 1000 + "." + Long.toString(1000 + us % 1000).substring(1);
    }

    private static Integer known(int count) {
        return count == UsageReader.UNKNOWN ? null : count;
    }
}
