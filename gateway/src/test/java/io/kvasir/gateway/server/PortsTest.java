package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class PortsTest {
    @Test
    void addressesAreWrittenAsInUrls() {
        assertEquals("[::]:1", Ports.text("::", 1));
        assertEquals("[::1]:2", Ports.text("[::1]", 2));
        assertEquals("0.0.0.0:3", Ports.text("0.0.0.0", 3));
        assertEquals("name:4", Ports.text("name", 4));
    }
}
