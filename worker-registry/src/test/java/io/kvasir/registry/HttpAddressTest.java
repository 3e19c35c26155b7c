package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.URI;

/** What is wrong with an address of an HTTP server is said in words that name the limit. */
class HttpAddressTest {
    private static final String MUST = "must be http://host:port or https://host:port";

    @ParameterizedTest
    @ValueSource(
            strings = {
                "http://h",
                "https://h:1/path",
                "http://[::1]:65535",
                "http://u:p@h-1.example:8000",
                "http://u_1@h"
            })
    void thisCanBeConnectedTo(String url) {
        assertNull(HttpAddress.problemOrNull(URI.create(url)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"h:1", "//h:1", "ftp://h:1", "http:h", "http:/path", "http://h:x", "h"})
    void thisIsNoAddress(String url) {
        assertEquals(MUST, HttpAddress.problemOrNull(URI.create(url)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"http://vllm_0:8000", "https://u_1@vllm_0"})
    void namesOfHostsHaveNoUnderscore(String url) {
        assertEquals(
                MUST + ", with a host whose name has no '_'",
                HttpAddress.problemOrNull(URI.create(url)));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 65_536})
    void aPortHasLimits(int port) {
        assertEquals(
                "has port " + port + ", which is not within 1..65535",
                HttpAddress.problemOrNull(URI.create("http://h:" + port)));
    }
}
