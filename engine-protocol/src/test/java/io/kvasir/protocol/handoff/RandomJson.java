package io.kvasir.protocol.handoff;

import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/** Writes random JSON text in every form the grammar allows: odd numbers, escapes, white space. */
final class RandomJson {
    private static final List<String> SPACES = List.of("", "", "", " ", "\n", "\t", " \r\n ");
    private static final List<String> SCALARS =
            List.of(
                    "null",
                    "true",
                    "false",
                    "0",
                    "-0",
                    "1",
                    "-17",
                    "1.0",
                    "1.50",
                    "1e5",
                    "1E+05",
                    "-2.5e-07",
                    "9007199254740993",
                    "18446744073709551616",
                    "0.1000000000000000055",
                    "123456789012345678901234567890.123456789");
    private static final List<String> STRING_PARTS =
            List.of(
                    "a",
                    "Z",
                    " ",
                    "ü",
                    "Ω",
                    "\uD83D\uDE00",
                    "\\n",
                    "\\\"",
                    "\\\\",
                    "\\/",
                    "\\u0041",
                    "\\ud83d\\ude00",
                    "{",
                    "]",
                    ",",
                    ":");

    private final Random random;

    RandomJson(Random random) {
        this.random = random;
    }

    String space() {
        return SPACES.get(random.nextInt(SPACES.size()));
    }

    String object(int depth) {
        final StringBuilder text = new StringBuilder(space()).append('{').append(space());
        final Set<String> names = new HashSet<>();
        final int size = random.nextInt(6);
        for (int i = 0; i < size; i++) {
            final String name = string();
            if (names.add(VerbatimJson.parse("{" + name + ":0}").names().getFirst())) {
                text.append(names.size() > 1 ? "," : "")
                        .append(space())
                        .append(name)
                        .append(space())
                        .append(':')
                        .append(space())
                        .append(value(depth - 1))
                        .append(space());
            }
        }
        return text.append('}').append(space()).toString();
    }

    String value(int depth) {
        final int kind = random.nextInt(depth > 0 ? 6 : 4);
        return switch (kind) {
            case 0, 1 -> SCALARS.get(random.nextInt(SCALARS.size()));
            case 2, 3 -> string();
            case 4 -> array(depth);
            default -> object(depth).strip();
        };
    }

    private String array(int depth) {
        final StringBuilder text = new StringBuilder("[").append(space());
        final int size = random.nextInt(4);
        for (int i = 0; i < size; i++) {
            text.append(i > 0 ? "," : "").append(space()).append(value(depth - 1)).append(space());
        }
        return text.append(']').toString();
    }

    String string() {
        final StringBuilder text = new StringBuilder("\"");
        final int size = random.nextInt(5);
        for (int i = 0; i < size; i++) {
            text.append(STRING_PARTS.get(random.nextInt(STRING_PARTS.size())));
        }
        return text.append('"').toString();
    }
}
