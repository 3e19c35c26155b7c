package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;

class TextTableTest {
    @Test
    void columnsAreAsWideAsTheirWidestCellAndNumbersStandRight() {
        final StringWriter text = new StringWriter();
        final PrintWriter out = new PrintWriter(text);
        new TextTable("mode", "n").row("kv", "1000").row("round-robin", "7").print(out);
        assertEquals(
                List.of(
                        "mode            n",
                        "-----------------",
                        "kv           1000",
                        "round-robin     7"),
                text.toString().lines().toList());
    }

    @Test
    void columnsAreInCellsOfTheTerminal() {
        final StringWriter text = new StringWriter();
        final PrintWriter out = new PrintWriter(text);
        new TextTable("名前", "n").row("模型", "1").row("cafe\u0301-👩", "2").row("x", "3").print(out);
        assertEquals(
                List.of("名前     n", "----------", "模型     1", "cafe\u0301-👩  2", "x        3"),
                text.toString().lines().toList());
    }

    @Test
    void aRowWithAnotherNumberOfCellsIsAProgrammersError() {
        final TextTable table = new TextTable("a", "b");
        assertThrows(IllegalArgumentException.class, () -> table.row("x"));
    }
}
