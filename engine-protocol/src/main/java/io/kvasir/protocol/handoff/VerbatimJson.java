package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * A JSON object kept as the bytes it came in: number forms, order, unknown fields and white space
 * survive. Knows where its own members lie; an edit copies everything else byte for byte.
 * Immutable; safe for any thread.
 *
 * <p>Cost: one walk over the bytes when parsed, one copy per edit.
 */
public final class VerbatimJson {
    /** Deepest nesting of arrays and objects in a member's value; a deeper one is malformed. */
    public static final int MAX_DEPTH = JsonScanner.MAX_DEPTH;

    private static final JsonMapper MAPPER = new JsonMapper();

    /** One member: its name in clear, and where name and value lie, end exclusive. */
    private record Member(String name, int nameStart, int valueStart, int valueEnd) {}

    private final byte[] json;
    private final int open; // offset of {
    private final List<Member> members;

    private VerbatimJson(byte[] json, int open, List<Member> members) {
        this.json = json;
        this.open = open;
        this.members = members;
    }

    /**
     * Parses one object. The bytes are copied.
     *
     * @param json UTF-8 text of one object, white space around it allowed
     * @return the object
     * @throws MalformedJsonException if it is anything else
     */
    public static VerbatimJson parse(byte[] json) {
        return parse(json, 0, json.length);
    }

    /**
     * Parses one object out of a larger array. The bytes are copied.
     *
     * @param json UTF-8 text
     * @param from first byte
     * @param to byte after the last
     * @return the object
     * @throws MalformedJsonException if it is anything but one object, white space around it
     *     allowed
     * @throws IndexOutOfBoundsException if the range is not in the array
     */
    public static VerbatimJson parse(byte[] json, int from, int to) {
        Objects.checkFromToIndex(from, to, json.length);
        return own(Arrays.copyOfRange(json, from, to));
    }

    /**
     * Parses one object.
     *
     * @param json text of one object
     * @return the object
     * @throws MalformedJsonException if it is anything else
     */
    public static VerbatimJson parse(String json) {
        return own(json.getBytes(StandardCharsets.UTF_8));
    }

    private static VerbatimJson own(byte[] json) {
        final JsonScanner scanner = new JsonScanner(json, 0, json.length);
        scanner.skipWhitespace();
        final int open = scanner.at();
        scanner.require('{');
        final List<Member> members = new ArrayList<>();
        scanner.skipWhitespace();
        if (!scanner.skipIf('}')) {
            do {
                members.add(member(scanner, json));
            } while (scanner.skipIf(','));
            scanner.require('}');
        }
        scanner.skipWhitespace();
        if (!scanner.atEnd()) {
            throw scanner.malformed("more than one JSON value");
        }
        return new VerbatimJson(json, open, List.copyOf(members));
    }

    private static Member member(JsonScanner scanner, byte[] json) {
        scanner.skipWhitespace();
        final int nameStart = scanner.at();
        scanner.skipString();
        final String name = name(scanner, json, nameStart);
        scanner.skipWhitespace();
        scanner.require(':');
        scanner.skipWhitespace();
        final int valueStart = scanner.at();
        try {
            scanner.skipValue();
        } catch (MalformedJsonException e) {
            throw e.in(name);
        }
        final int valueEnd = scanner.at();
        scanner.skipWhitespace();
        return new Member(name, nameStart, valueStart, valueEnd);
    }

    /** Returns a name in clear: escapes do not make it another name. */
    private static String name(JsonScanner scanner, byte[] json, int start) {
        for (int i = start; i < scanner.at(); i++) {
            if (json[i] == '\\') {
                return unquote(scanner, json, start);
            }
        }
        return new String(json, start + 1, scanner.at() - start - 2, StandardCharsets.UTF_8);
    }

    private static String unquote(JsonScanner scanner, byte[] json, int start) {
        try {
            return MAPPER.readValue(json, start, scanner.at() - start, String.class);
        } catch (IOException e) {
            throw scanner.malformed("unreadable member name (" + e.getMessage() + ")");
        }
    }

    /**
     * Returns the whole text.
     *
     * @return a copy of the bytes, equal to those parsed
     */
    public byte[] bytes() {
        return json.clone();
    }

    /**
     * Returns the length of the whole text.
     *
     * @return bytes
     */
    public int length() {
        return json.length;
    }

    /**
     * Returns the names of the members, in order of the text.
     *
     * @return names without escapes; a name that the text has twice is here twice
     */
    public List<String> names() {
        return members.stream().map(Member::name).toList();
    }

    /**
     * Returns the text of a value.
     *
     * @param name the member's name
     * @return a copy of the bytes from the first to the last of the value, or empty without such a
     *     member
     * @throws MalformedJsonException if the text has the member twice: parsers differ in which one
     *     counts
     */
    public Optional<byte[]> value(String name) {
        return member(name).map(m -> Arrays.copyOfRange(json, m.valueStart, m.valueEnd));
    }

    /**
     * Returns a member that is an object.
     *
     * @param name the member's name
     * @return the object, or empty without such a member or where it is null or something else
     * @throws MalformedJsonException if the text has the member twice
     */
    public Optional<VerbatimJson> object(String name) {
        return member(name)
                .filter(m -> json[m.valueStart] == '{')
                .map(m -> parse(json, m.valueStart, m.valueEnd));
    }

    /**
     * Returns the first element of a member that is an array of objects, such as {@code choices}.
     *
     * @param name the member's name
     * @return the object, or empty without such a member or where it holds no object first
     * @throws MalformedJsonException if the text has the member twice
     */
    public Optional<VerbatimJson> firstObject(String name) {
        return member(name).filter(m -> json[m.valueStart] == '[').flatMap(this::firstObject);
    }

    private Optional<VerbatimJson> firstObject(Member array) {
        final JsonScanner scanner = new JsonScanner(json, array.valueStart + 1, array.valueEnd);
        scanner.skipWhitespace();
        if (scanner.peek() != '{') {
            return Optional.empty();
        }
        final int start = scanner.at();
        scanner.skipValue();
        return Optional.of(parse(json, start, scanner.at()));
    }

    private Optional<Member> member(String name) {
        Member found = null;
        for (Member member : members) {
            if (member.name.equals(name)) {
                if (found != null) {
                    throw new MalformedJsonException("second " + name, member.nameStart).in(name);
                }
                found = member;
            }
        }
        return Optional.ofNullable(found);
    }

    /** Reads a value for the typed views; one that no Java type holds is absent to them. */
    Optional<JsonNode> tree(String name) {
        return member(name).flatMap(this::tree);
    }

    private Optional<JsonNode> tree(Member member) {
        try {
            return Optional.of(
                    MAPPER.readTree(json, member.valueStart, member.valueEnd - member.valueStart));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /**
     * Starts a changed copy.
     *
     * @return an edit of this object, which itself stays as it is
     */
    public Edit edit() {
        return new Edit();
    }

    /** Changes to make in one pass. One thread; the last change of a name counts. */
    public final class Edit {
        private final Map<String, Optional<byte[]>> changes = new LinkedHashMap<>();

        private Edit() {}

        /**
         * Gives a member a value: in place where the member exists, else as the last member.
         *
         * @param name the member's name
         * @param value JSON text of any one value, taken over verbatim
         * @return this
         * @throws MalformedJsonException if the value is not one JSON value
         */
        public Edit set(String name, byte[] value) {
            final JsonScanner scanner = new JsonScanner(value, 0, value.length);
            scanner.skipWhitespace();
            final int start = scanner.at();
            scanner.skipValue();
            final int end = scanner.at();
            scanner.skipWhitespace();
            if (!scanner.atEnd()) {
                throw scanner.malformed("more than one JSON value for " + name);
            }
            changes.put(name, Optional.of(Arrays.copyOfRange(value, start, end)));
            return this;
        }

        /**
         * Gives a member an object.
         *
         * @param name the member's name
         * @param value the object, taken over verbatim
         * @return this
         */
        public Edit set(String name, VerbatimJson value) {
            return set(name, value.json);
        }

        /**
         * Gives a member a string.
         *
         * @param name the member's name
         * @param value the string in clear
         * @return this
         */
        public Edit set(String name, String value) {
            changes.put(name, Optional.of(quote(value)));
            return this;
        }

        /**
         * Gives a member a whole number.
         *
         * @param name the member's name
         * @param value the number
         * @return this
         */
        public Edit set(String name, long value) {
            changes.put(name, Optional.of(ascii(Long.toString(value))));
            return this;
        }

        /**
         * Gives a member true or false.
         *
         * @param name the member's name
         * @param value the truth
         * @return this
         */
        public Edit set(String name, boolean value) {
            changes.put(name, Optional.of(ascii(Boolean.toString(value))));
            return this;
        }

        /**
         * Takes a member out; nothing happens where it is absent.
         *
         * @param name the member's name
         * @return this
         */
        public Edit remove(String name) {
            changes.put(name, Optional.empty());
            return this;
        }

        /**
         * Makes the changed object. Bytes of members that were not named, their order and the white
         * space between them are those of the original.
         *
         * @return the changed object
         * @throws MalformedJsonException if the text has a named member twice
         */
        public VerbatimJson apply() {
            changes.keySet().forEach(VerbatimJson.this::member);
            final Map<String, Optional<byte[]>> rest = new LinkedHashMap<>(changes);
            final ByteArrayOutputStream out = new ByteArrayOutputStream(json.length + 256);
            out.write(json, 0, open + 1);
            boolean first = true;
            for (int i = 0; i < members.size(); i++) {
                final Member member = members.get(i);
                final Optional<byte[]> change = rest.remove(member.name);
                if (change != null && change.isEmpty()) {
                    continue;
                }
                final int lead = first ? 0 : i; // the first one written has no comma before it
                copy(out, leadStart(lead), members.get(lead).nameStart);
                copy(out, member.nameStart, member.valueStart);
                if (change == null) {
                    copy(out, member.valueStart, member.valueEnd);
                } else {
                    out.writeBytes(change.get());
                }
                first = false;
            }
            for (Map.Entry<String, Optional<byte[]>> added : rest.entrySet()) {
                if (added.getValue().isPresent()) {
                    out.writeBytes(ascii(first ? "" : ","));
                    out.writeBytes(quote(added.getKey()));
                    out.write(':');
                    out.writeBytes(added.getValue().get());
                    first = false;
                }
            }
            copy(out, leadStart(members.size()), json.length);
            return own(out.toByteArray());
        }

        private void copy(ByteArrayOutputStream out, int from, int to) {
            out.write(json, from, to - from);
        }

        /** Where the bytes before a member's name begin: after the value before it, or after {. */
        private int leadStart(int member) {
            return member == 0 ? open + 1 : members.get(member - 1).valueEnd;
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] quote(String text) {
        return quoted(text).getBytes(StandardCharsets.UTF_8);
    }

    /** Returns a string as JSON text, quotes included. */
    static String quoted(String text) {
        try {
            return MAPPER.writeValueAsString(text);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("not writable as JSON: " + text, e);
        }
    }

    /** Two objects are equal when their bytes are. */
    @Override
    public boolean equals(Object other) {
        return other instanceof VerbatimJson that && Arrays.equals(json, that.json);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(json);
    }

    /** Returns the text. */
    @Override
    public String toString() {
        return new String(json, StandardCharsets.UTF_8);
    }
}
