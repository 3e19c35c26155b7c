package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class TerminalTest {
    @Test
    void colourNeedsATerminalAndNoColourUnset() {
        assertTrue(Terminal.hasColour(true, null));
        assertTrue(Terminal.hasColour(true, ""));
        assertFalse(Terminal.hasColour(true, "1"));
        assertFalse(Terminal.hasColour(false, null));
    }

    @Test
    void aTerminalThatKnowsNoEscapeSequencesGetsNone() {
        assertTrue(Terminal.isWatched(true, "xterm"));
        assertTrue(Terminal.isWatched(true, null));
        assertFalse(Terminal.isWatched(true, "dumb"));
        assertFalse(Terminal.isWatched(false, "xterm"));
    }

    @Test
    void nothingInOthersTextSteersTheTerminalOrTurnsItRound() {
        assertEquals("a?[2Jb\tc??é", Terminal.printable("a\u001b[2Jb\tc\u009b\u202eé"));
    }

    @Test
    void aJoinerIsLetThroughBetweenTwoPicturesAlone() {
        final String family = "👩\u200d👩\u200d👧";
        assertEquals(family, Terminal.printable(family));
        final String withTone = "👩\ud83c\udffd\u200d🚀";
        assertEquals(withTone, Terminal.printable(withTone));
        final String withStyle = "❤\ufe0f\u200d🔥";
        assertEquals(withStyle, Terminal.printable(withStyle));
        assertEquals(
                "a?b 👩?b a?👩 👩?", Terminal.printable("a\u200db 👩\u200db a\u200d👩 👩\u200d"));
        assertEquals("👩??👩", Terminal.printable("👩\u200d\u202e👩"));
    }

    @Test
    void aTextIsCutByTheCellsThatItTakes() {
        assertEquals("模型", Terminal.printable("模型", 4));
        assertEquals("模…", Terminal.printable("模型模", 4));
        assertEquals("👩…", Terminal.printable("👩\u200d👩", 3));
        assertTrue(Terminal.printable("e" + "\u0301".repeat(1_000_000), 10).length() < 100);
    }

    @Test
    void aLongTextIsCut() {
        assertEquals("abc", Terminal.printable("abc", 3));
        assertEquals("ab…", Terminal.printable("abcd", 3));
        assertEquals(10, Terminal.printable("x".repeat(1_000_000), 10).length());
    }
}
