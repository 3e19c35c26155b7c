package io.kvasir.prompt.tokenizer;

import java.util.Random;

/** Texts that tokenizers get wrong: every kind of character, at every kind of boundary. */
final class RandomTexts {
    private static final String[] FRAGMENTS = {
        "the",
        " The",
        "HELLO",
        "don't",
        "I'LL",
        "we've",
        "x'ſ",
        "'s",
        "'S ",
        " word",
        "word.",
        "swords",
        "café",
        "cafe\u0301",
        "é\u0301clair",
        "Straße",
        "naïve",
        "Привет",
        " мир",
        "你好",
        "世界。",
        "日本語",
        "カタカナ",
        "안녕",
        "\u1112\u1161\u11ab",
        "مرحبا",
        "नमस्ते",
        "สวัสดี",
        "😀",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "❤️",
        "👍🏽",
        "1",
        "12",
        "123",
        "1234",
        "3.14159",
        "1,000,000",
        "①②",
        "Ⅻ",
        "½",
        "٣٤",
        "𝟘𝟙",
        "x86_64",
        " ",
        "  ",
        "   ",
        "    ",
        "        ",
        "         ",
        "\t",
        "\t\t",
        "\n",
        "\n\n",
        "\r\n",
        " \n",
        "\n ",
        "\u00a0",
        "\u2003",
        "\u3000",
        "\u200b",
        "\u0085",
        "\u2028",
        "\ufeff",
        "\u0000",
        "\u001b[0m",
        "()",
        "{}",
        "[]",
        "();\n",
        "->",
        "==",
        "!=",
        "...",
        "…",
        "—",
        "http://a.b/c?d=e&f=%20",
        "def f(x):\n    return x**2\n",
        "if (a && b) {\n\t++i;\n}\n",
        "<div class=\"x\">",
        "\\n",
        "#include",
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<pad>",
        "<|start_header_id|>",
        "<|im_start",
        "<tool_call>",
        "<mask>",
        " <mask> ",
        "<right>",
        "<right>  \n",
        "Ġ",
        "Ċ",
        "ĠĠ",
        "ﬁ",
        "Å",
        "ẛ̣",
        "İ",
        "ı",
        "ꜱ",
        "𐐀",
        "\uD83D\uDE80"
    };

    private final Random random;

    RandomTexts(long seed) {
        random = new Random(seed);
    }

    /**
     * Up to {@code fragments} fragments, each from the list above, of ASCII, or of any character.
     */
    String next(int fragments) {
        final StringBuilder text = new StringBuilder();
        final int count = random.nextInt(fragments + 1);
        for (int i = 0; i < count; i++) {
            switch (random.nextInt(10)) {
                case 0 -> text.append((char) (' ' + random.nextInt(95)));
                case 1 -> text.appendCodePoint(anyCharacter());
                case 2 -> text.append(Integer.toString(random.nextInt(), 2 + random.nextInt(35)));
                case 3 -> text.repeat(" \n\tab0.".charAt(random.nextInt(7)), random.nextInt(30));
                default -> text.append(FRAGMENTS[random.nextInt(FRAGMENTS.length)]);
            }
        }
        return text.toString();
    }

    private int anyCharacter() {
        while (true) {
            final int limit = random.nextBoolean() ? 0x3000 : 0x20000;
            final int codePoint = random.nextInt(limit);
            if ((codePoint < 0xD800 || codePoint > 0xDFFF) && Character.isDefined(codePoint)) {
                return codePoint;
            }
        }
    }
}
