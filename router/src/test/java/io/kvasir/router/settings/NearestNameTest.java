package io.kvasir.router.settings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;

class NearestNameTest {
    private static final List<String> KNOWN =
            List.of("host", "port", "queue-threshold", "queue-policy", "url", "h");

    @ParameterizedTest
    @CsvSource({
        "prot, port",
        "ulr, url",
        "rul, url",
        "lru, ",
        "qeue-threshold, queue-threshold",
        "queue-treshhold, queue-threshold",
        "ports, port",
        "PORT, port",
        "Queue-Treshhold, queue-threshold",
        "queue, ",
        "nosuch, ",
        "x, ",
        "'', "
    })
    void aNameIsNearWithOneLetterInThreeWrongOrSwapped(String name, String near) {
        assertEquals(near, NearestName.nearOrNull(name, KNOWN));
    }

    @Test
    void theNearestMayBeUnlikeAndIsTheFirstOfSeveral() {
        assertEquals("host", NearestName.ofOrNull("xxxx", KNOWN));
        assertNull(NearestName.ofOrNull("port", List.of()));
        assertNull(NearestName.nearOrNull("port", List.of()));
    }
}
