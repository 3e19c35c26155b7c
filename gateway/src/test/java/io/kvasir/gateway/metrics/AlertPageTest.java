package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.regex.Pattern;

/** {@code docs/operations/alerts.md} has each alert with its severity and what to do. */
class AlertPageTest {
    private static final Pattern RULE = Pattern.compile("(?s)- alert: (\\w+)\n.*?severity: (\\w+)");
    private static final Pattern ROW =
            Pattern.compile("(?m)^\\| (Kvasir\\w+) \\| (\\w+) \\| [^|]{20,} \\| [^|]{10,} \\|$");

    @Test
    void eachAlertIsOnThePageInTheOrderOfTheRules() throws IOException {
        assertEquals(found(RULE, "alerts.yaml"), found(ROW, "alerts.md"));
    }

    private static List<String> found(Pattern pattern, String file) throws IOException {
        return pattern.matcher(Files.readString(Documents.file("docs/operations/" + file)))
                .results()
                .map(found -> found.group(1) + " " + found.group(2))
                .toList();
    }
}
