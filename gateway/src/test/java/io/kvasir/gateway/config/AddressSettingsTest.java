package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.Setting;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Addresses in settings: what none can be is refused where it is read, by the setting's name. */
class AddressSettingsTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "10.0.0.0/33",
                "::1/129",
                "10.0.0.9-10.0.0.1",
                "host",
                "1-",
                "10.0.0",
                "10",
                "10.0.0/24",
                "10.0.0-10.0.0.9",
                "10.0.0.1-10.0.9",
                "10.0.0.1.2"
            })
    void whatIsNoRangeOfAddressesIsRefusedInWords(String range) {
        assertTrue(
                refusal(GatewaySettings.TRUSTED_NETWORKS, range)
                        .contains("trusted-network=" + range + " is no address range, as"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "10.0.0.1",
                "10.0.0.0/8",
                "10.0.0.1-10.0.1.9",
                "10.0.0.1-9",
                "::1",
                "[::]/64",
                "::ffff:10.0.0.1",
                "fe80::1-fe80::9"
            })
    void aRangeOfAddressesIsTaken(String range) {
        assertEquals(range, AddressRange.check(range));
    }

    @ParameterizedTest
    @CsvSource({
        "nats://::1:4222, is no address of NATS",
        "nats://nats_1:4222, is no address of NATS",
        "'nats://a,http://b', is no address of NATS",
        "'nats://a,nats://u:secret@b:0', has port 0",
        "h:65536, has port 65536",
    })
    void whatIsNoServerOfNatsIsRefused(String servers, String words) {
        final String refusal = refusal(GatewaySettings.NATS_URL, servers);
        assertTrue(refusal.contains("nats-url="), refusal);
        assertTrue(refusal.contains(words), refusal);
        assertFalse(refusal.contains("secret"), refusal);
    }

    @ParameterizedTest
    @CsvSource({
        "nats, nats://nats",
        "'nats:1, tls://u:p@[::1]:4222', 'nats://nats:1,tls://u:p@[::1]:4222'",
        "wss://nats.example, wss://nats.example"
    })
    void serversOfNatsHaveASchemeAHostAndAPort(String servers, String read) {
        assertEquals(read, GatewaySettings.NATS_URL.parse(servers));
    }

    @ParameterizedTest
    @CsvSource({
        "http://c:0, has port 0",
        "http://c:65536, has port 65536",
        "ftp://c, must be http://",
        "http://c_1:4318, whose name has no '_'"
    })
    void whatIsNoCollectorIsRefused(String url, String words) {
        final String refusal = refusal(GatewaySettings.OTLP_ENDPOINT, url);
        assertTrue(refusal.startsWith("otlp-endpoint=" + url + " "), refusal);
        assertTrue(refusal.contains(words), refusal);
    }

    @ParameterizedTest
    @CsvSource({
        "etcd:2379, must be http://host:port or https://",
        "ftp://etcd:2379, must be http://host:port or https://",
        "http://u:secret@etcd:2379, by discovery-etcd-user and discovery-etcd-password-file"
    })
    void whatIsNoMemberOfEtcdIsRefusedByTheSettingsName(String member, String words) {
        final String refusal = refusal(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS, member);
        assertTrue(refusal.contains("discovery-etcd-endpoints="), refusal);
        assertTrue(refusal.contains(words), refusal);
        assertFalse(refusal.contains("secret"), refusal);
    }

    @Test
    void aMemberOfEtcdMayHaveAnAddressOfIpv6() {
        assertEquals("[::1]", EtcdAccess.endpoint("http://[::1]:2379").getHost());
    }

    private static String refusal(Setting<?> setting, String text) {
        return assertThrows(IllegalArgumentException.class, () -> setting.parse(text)).getMessage();
    }
}
