package io.kvasir.services.http;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.server.FailureWords;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * A request's JSON object. Arrays of numbers are kept as such, other members as JSON values;
 * unknown members are ignored, of repeated ones the last counts. A member that is missing or not
 * what is asked for is a 422.
 */
public final class JsonBody {
    private static final BigInteger MOST_UNSIGNED =
            BigInteger.TWO.pow(Long.SIZE).subtract(BigInteger.ONE);
    private static final long MOST_U32 = (1L << Integer.SIZE) - 1;
    private static final int FIRST_NUMBERS = 64;
    private static final int MOST_TEXT_LENGTH = 4_096;
    private static final int MOST_TEXTS = 1_024;

    private final Map<String, Object> members = new HashMap<>(); // long[] or JsonNode

    private JsonBody() {}

    /**
     * Reads an object.
     *
     * @throws ServiceException 400 if it is not JSON, 422 if it is another value, or a number in an
     *     array of numbers has more than 64 bits
     */
    public static JsonBody parse(byte[] bytes) throws ServiceException {
        final JsonBody body = new JsonBody();
        try (JsonParser parser = Json.FACTORY.createParser(bytes)) {
            final JsonToken first = parser.nextToken();
            if (first == null) {
                throw new ServiceException(400, "the body is empty; a JSON object is needed");
            }
            if (first != JsonToken.START_OBJECT) {
                Json.MAPPER.readTree(parser); // which may not be JSON at all
                throw ServiceException.unusable("a JSON object is needed");
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                final String name = parser.currentName();
                final JsonToken value = parser.nextToken();
                body.members.put(
                        name,
                        value == JsonToken.START_ARRAY
                                ? array(name, parser)
                                : Json.MAPPER.readTree(parser));
            }
            if (parser.nextToken() != null) {
                throw new ServiceException(400, "something follows the JSON object");
            }
        } catch (IOException e) {
            throw new ServiceException(400, "the body is not JSON: " + FailureWords.of(e));
        }
        return body;
    }

    /**
     * Whole numbers become an array; the first other value makes the member one that is unusable.
     */
    private static Object array(String name, JsonParser parser)
            throws IOException, ServiceException {
        long[] numbers = new long[FIRST_NUMBERS];
        int count = 0;
        String wrong = null;
        int unsigned = -1; // the first above all signed ones
        boolean isNegative = false;
        if (parser.nextToken() == JsonToken.VALUE_STRING) {
            return texts(name, parser);
        }
        for (; parser.currentToken() != JsonToken.END_ARRAY; parser.nextToken()) {
            if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
                wrong = wrong == null ? "not a whole number" : wrong;
                parser.skipChildren();
                continue;
            }
            final boolean isLong = parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER;
            if (!isLong && !isUnsigned(parser.getBigIntegerValue())) {
                wrong = wrong == null ? parser.getText() + " is too large" : wrong;
                continue;
            }
            if (wrong == null) {
                if (count == numbers.length) {
                    numbers = Arrays.copyOf(numbers, 2 * count);
                }
                if (isLong) {
                    numbers[count] = parser.getLongValue();
                    isNegative |= numbers[count] < 0;
                } else {
                    numbers[count] = parser.getBigIntegerValue().longValue();
                    unsigned = unsigned < 0 ? count : unsigned;
                }
                count++;
            }
        }
        if (wrong != null) {
            return new Unusable(name + "[" + count + "]: " + wrong);
        }
        final long[] all = Arrays.copyOf(numbers, count);
        if (unsigned < 0) {
            return all;
        }
        final String why =
                name
                        + "["
                        + unsigned
                        + "]: "
                        + Long.toUnsignedString(all[unsigned])
                        + " is too large";
        return isNegative ? new Unusable(why) : new Unsigned(all, why);
    }

    /** A list that begins with a text. */
    private static Object texts(String name, JsonParser parser) throws IOException {
        final List<String> texts = new ArrayList<>();
        String wrong = null;
        for (; parser.currentToken() != JsonToken.END_ARRAY; parser.nextToken()) {
            if (parser.currentToken() != JsonToken.VALUE_STRING
                    || parser.getTextLength() > MOST_TEXT_LENGTH
                    || texts.size() == MOST_TEXTS) {
                wrong = wrong == null ? name + "[" + texts.size() + "]: not a text" : wrong;
                parser.skipChildren();
            } else if (wrong == null) {
                texts.add(parser.getText());
            }
        }
        return wrong == null ? new Texts(texts) : new Unusable(wrong);
    }

    /** A list of texts alone. */
    private record Texts(List<String> all) {}

    private static boolean isUnsigned(BigInteger value) {
        return value.signum() >= 0 && value.compareTo(MOST_UNSIGNED) <= 0;
    }

    /** Numbers of 64 bits without a sign, and why they cannot have one. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Unsigned(long[] all, String why) {}

    /** An array with something else in it than numbers of 64 bits. */
    private record Unusable(String why) {}

    private Object member(String name) throws ServiceException {
        final Object value = members.get(name);
        if (value == null) {
            throw ServiceException.unusable("missing field `" + name + "`");
        }
        return value;
    }

    /** Whether there is a member, null or not. */
    public boolean has(String name) {
        return members.containsKey(name);
    }

    /** A text of {@value #MOST_TEXT_LENGTH} characters at most. */
    public String text(String name) throws ServiceException {
        if (member(name) instanceof JsonNode node && node.isTextual()) {
            if (node.textValue().length() > MOST_TEXT_LENGTH) {
                throw ServiceException.unusable(
                        name + ": more than " + MOST_TEXT_LENGTH + " characters");
            }
            return whole(name, node.textValue());
        }
        throw ServiceException.unusable(name + ": a string is needed");
    }

    /** Checks that a text has no half of a surrogate pair, which no answer or page can show. */
    private static String whole(String name, String text) throws ServiceException {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
            throw ServiceException.unusable(name + ": half of a surrogate pair is no character");
        }
        return text;
    }

    /** A text, or what stands for it where there is none. */
    public String text(String name, String otherwise) throws ServiceException {
        return has(name) ? text(name) : otherwise;
    }

    /** A text; null where there is none, or a null. */
    public String textOrNull(String name) throws ServiceException {
        return !has(name) || (members.get(name) instanceof JsonNode node && node.isNull())
                ? null
                : text(name);
    }

    /** An unsigned number of 64 bits. */
    public long unsigned(String name) throws ServiceException {
        if (member(name) instanceof JsonNode node && node.isIntegralNumber()) {
            final BigInteger value = node.bigIntegerValue();
            if (isUnsigned(value)) {
                return value.longValue();
            }
        }
        throw ServiceException.unusable(name + ": a number from 0 to 2^64 - 1 is needed");
    }

    /** An unsigned number of 32 bits. */
    public long unsigned32(String name) throws ServiceException {
        if (member(name) instanceof JsonNode node
                && node.isIntegralNumber()
                && node.canConvertToLong()
                && node.longValue() >= 0
                && node.longValue() <= MOST_U32) {
            return node.longValue();
        }
        throw ServiceException.unusable(name + ": a number from 0 to 4294967295 is needed");
    }

    /** A number from 0 to 2^31 − 1, which all counts and ranks here are. */
    public int count(String name) throws ServiceException {
        if (member(name) instanceof JsonNode node
                && node.isIntegralNumber()
                && node.canConvertToInt()
                && node.intValue() >= 0) {
            return node.intValue();
        }
        throw ServiceException.unusable(name + ": a number from 0 to 2147483647 is needed");
    }

    /** The same, or what stands for it where there is none. */
    public int count(String name, int otherwise) throws ServiceException {
        return has(name) ? count(name) : otherwise;
    }

    /** A number; what stands for it where there is none, or a null. */
    public double number(String name, double otherwise) throws ServiceException {
        if (isAbsent(name)) {
            return otherwise;
        }
        if (member(name) instanceof JsonNode node && node.isNumber()) {
            return node.doubleValue();
        }
        throw ServiceException.unusable(name + ": a number is needed");
    }

    /** Whether there is no such member, or a null. */
    public boolean isAbsent(String name) {
        return !has(name) || (members.get(name) instanceof JsonNode node && node.isNull());
    }

    /** Texts by rank, as an object whose names are numbers. */
    public SortedMap<Integer, String> textsByRank(String name) throws ServiceException {
        if (!(member(name) instanceof JsonNode node) || !node.isObject()) {
            throw ServiceException.unusable(name + ": an object is needed");
        }
        final SortedMap<Integer, String> texts = new TreeMap<>();
        for (Map.Entry<String, JsonNode> entry : node.properties()) {
            final String text = entry.getValue().textValue();
            if (text == null || text.length() > MOST_TEXT_LENGTH || !isRank(entry.getKey())) {
                throw ServiceException.unusable(
                        name + ": texts of " + MOST_TEXT_LENGTH + " characters by rank are needed");
            }
            texts.put(Integer.valueOf(entry.getKey()), whole(name, text));
        }
        return texts;
    }

    private static boolean isRank(String text) {
        try {
            return Integer.parseInt(text) >= 0;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /** A list of texts; an empty one where there is none, or a null. */
    public List<String> texts(String name) throws ServiceException {
        if (isAbsent(name)) {
            return List.of();
        }
        return switch (member(name)) {
            case Texts(List<String> all) -> {
                for (String text : all) {
                    whole(name, text);
                }
                yield all;
            }
            case long[] numbers when numbers.length == 0 -> List.of();
            case Unusable(String why) -> throw ServiceException.unusable(why);
            default -> throw ServiceException.unusable(name + ": a list of texts is needed");
        };
    }

    /** Texts by name, as an object; none where there is no object, or a null. */
    public SortedMap<String, String> textsByName(String name) throws ServiceException {
        final SortedMap<String, String> texts = new TreeMap<>();
        final JsonNode object = objectOrNull(name);
        if (object != null) {
            for (Map.Entry<String, JsonNode> entry : object.properties()) {
                if (!entry.getValue().isTextual()) {
                    throw ServiceException.unusable(name + ": texts by name are needed");
                }
                texts.put(whole(name, entry.getKey()), whole(name, entry.getValue().textValue()));
            }
        }
        return texts;
    }

    /** An object; null where there is none, or a null. */
    public JsonNode objectOrNull(String name) throws ServiceException {
        if (isAbsent(name)) {
            return null;
        }
        if (member(name) instanceof JsonNode node && node.isObject()) {
            return node;
        }
        throw ServiceException.unusable(name + ": an object is needed");
    }

    /** Signed numbers of 64 bits. */
    public long[] signedArray(String name) throws ServiceException {
        return switch (member(name)) {
            case long[] numbers -> numbers;
            case Unsigned(_, String why) -> throw ServiceException.unusable(why);
            case Texts _ -> throw ServiceException.unusable(name + "[0]: not a whole number");
            case Unusable(String why) -> throw ServiceException.unusable(why);
            default -> throw ServiceException.unusable(name + ": a list of numbers is needed");
        };
    }

    /** Unsigned numbers of 64 bits. */
    public long[] unsignedArray(String name) throws ServiceException {
        if (member(name) instanceof Unsigned(long[] all, _)) {
            return all;
        }
        final long[] numbers = signedArray(name);
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] < 0) {
                throw ServiceException.unusable(
                        name + "[" + i + "]: a number from 0 to 2^64 - 1 is needed");
            }
        }
        return numbers;
    }

    /** Unsigned numbers of 32 bits, each in an int. */
    public int[] unsigned32Array(String name) throws ServiceException {
        final long[] numbers = signedArray(name);
        final int[] values = new int[numbers.length];
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] < 0 || numbers[i] > MOST_U32) {
                throw ServiceException.unusable(
                        name + "[" + i + "]: a number from 0 to 4294967295 is needed");
            }
            values[i] = (int) numbers[i];
        }
        return values;
    }
}
