package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class HostPortTest {
    @Test
    void addressesAreWrittenAsInUrls() {
        assertEquals("[::]:1", HostPort.of("::", 1));
        assertEquals("[::1]:2", HostPort.of("[::1]", 2));
        assertEquals("0.0.0.0:3", HostPort.of("0.0.0.0", 3));
        assertEquals("name:4", HostPort.of("name", 4));
        assertEquals("[fe80::1%eth0]:*", HostPort.of("fe80::1%eth0", "*"));
        assertEquals("[fe80::1%eth0]:*", HostPort.toBind("fe80::1%eth0", 0));
        assertEquals("name:5", HostPort.toBind("name", 5));
    }

    @Test
    void anAddressOfIpv6HasColonsWithBracketsAndWithout() {
        assertTrue(HostPort.isV6("::1"));
        assertTrue(HostPort.isV6("[::1]"));
        assertFalse(HostPort.isV6("10.0.0.1"));
        assertFalse(HostPort.isV6("name"));
    }
}
