package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CellsTest {
    @ParameterizedTest
    @CsvSource({
        "'', 0",
        "worker/0, 8",
        "é, 1",
        "e\u0301, 1",
        "模型, 4",
        "モデル, 6",
        "ﾓﾃﾞﾙ, 4",
        "모델, 4",
        "\u1106\u1169\u1103\u1166\u11af, 4",
        "ＡＢ！, 6",
        "👩, 2",
        "👩\u200d👩, 4",
        "❤\ufe0f, 1",
        "⚡, 2",
        "🇮🇸, 2",
        "𠀀, 2",
        "㉈, 1",
        "…, 1"
    })
    void aTextTakesTheCellsOfItsCharacters(String text, int cells) {
        assertEquals(cells, Cells.of(text));
    }

    @Test
    void noCharacterIsCutInTwoAtEitherEnd() {
        assertEquals("模", Cells.head("模型", 3));
        assertEquals("型", Cells.tail("模型", 3));
        assertEquals("👩", Cells.head("👩\u200d👩x", 3));
        assertEquals("x", Cells.tail("模\u0301x", 2));
        assertEquals("e\u0301x", Cells.tail("ae\u0301x", 2));
        assertEquals("ab", Cells.head("ab", 9));
        assertEquals("ab", Cells.tail("ab", 9));
    }
}
