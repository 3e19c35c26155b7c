package io.kvasir.gateway.config;

import io.kvasir.registry.FailureText;

import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.YamlUnicodeReader;
import org.snakeyaml.engine.v2.composer.Composer;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.ParserException;
import org.snakeyaml.engine.v2.exceptions.ReaderException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.parser.Parser;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.scanner.StreamReader;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Makes a tree of the YAML of a file, whose nesting is limited. Stateless. */
final class YamlTree {
    private YamlTree() {}

    /**
     * Parses all of it.
     *
     * @param file for messages
     * @return empty if it has nothing
     * @throws IOException if it is no text; names the file
     * @throws IllegalArgumentException if it is not YAML; one line that names file, line and column
     */
    static Optional<Node> of(Path file, byte[] content) throws IOException {
        final LoadSettings settings =
                LoadSettings.builder()
                        .setLabel(file.toString())
                        .setCodePointLimit(Integer.MAX_VALUE) // what reads files limits their bytes
                        .build();
        final StreamReader reader =
                new StreamReader(
                        settings, new YamlUnicodeReader(new ByteArrayInputStream(content)));
        try {
            final Parser parser = new ShallowParser(new ParserImpl(settings, reader));
            return new Composer(settings, parser).getSingleNode();
        } catch (YamlEngineException e) {
            if (e.getCause() instanceof IOException unread) {
                throw unread(file, unread);
            }
            throw notYaml(file, content, e);
        }
    }

    /** The library's own message has an extract of the file over several lines. */
    private static IllegalArgumentException notYaml(
            Path file, byte[] content, YamlEngineException e) {
        final String where;
        final String reason;
        if (e instanceof MarkedYamlEngineException marked && marked.getProblem() != null) {
            where =
                    marked.getProblemMark()
                            .map(at -> ":%d:%d".formatted(at.getLine() + 1, at.getColumn() + 1))
                            .orElse("");
            reason = marked.getProblem();
        } else if (e instanceof ReaderException unread) {
            where = position(content, unread.getPosition());
            reason = "U+%04X is not allowed".formatted(unread.getCodePoint());
        } else {
            where = "";
            reason = FailureText.of(e);
        }
        return new IllegalArgumentException(
                file + where + " is not YAML: " + reason.strip().replaceAll("\\s*\\R\\s*", ", "),
                e);
    }

    /** Line and column of the character behind so many. */
    private static String position(byte[] content, int characters) {
        final StringBuilder before = new StringBuilder();
        try (Reader text = new YamlUnicodeReader(new ByteArrayInputStream(content))) {
            for (int i = 0; i < characters; i++) {
                final char unit = (char) text.read();
                before.append(unit);
                if (Character.isHighSurrogate(unit)) {
                    before.append((char) text.read());
                }
            }
        } catch (IOException e) {
            return ""; // what is behind it is no text
        }
        final List<String> lines = before.append('x').toString().lines().toList();
        final String last = lines.getLast();
        return ":%d:%d".formatted(lines.size(), last.codePointCount(0, last.length()));
    }

    private static FileSystemException unread(Path file, IOException cause) {
        final FileSystemException named =
                new FileSystemException(file.toString(), null, FailureText.of(cause));
        named.initCause(cause);
        return named;
    }

    /** Refuses what is nested deeper than the composer's stack may be. */
    private static final class ShallowParser implements Parser {
        private static final int MAX_DEPTH = 100;

        private final Parser parser;
        private int depth;

        ShallowParser(Parser parser) {
            this.parser = parser;
        }

        @Override
        public boolean checkEvent(Event.ID choice) {
            return parser.checkEvent(choice);
        }

        @Override
        public Event peekEvent() {
            return parser.peekEvent();
        }

        @Override
        public boolean hasNext() {
            return parser.hasNext();
        }

        @Override
        public Event next() {
            final Event event = parser.next();
            switch (event.getEventId()) {
                case SequenceStart, MappingStart -> depth++;
                case SequenceEnd, MappingEnd -> depth--;
                default -> {}
            }
            if (depth > MAX_DEPTH) {
                throw new ParserException(
                        "it is nested more than " + MAX_DEPTH + " deep", event.getStartMark());
            }
            return event;
        }
    }
}
