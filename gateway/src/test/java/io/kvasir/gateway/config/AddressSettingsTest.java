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
    @ValueSource(strings = {"10.0.0.0/33", "::1/129", "10.0.0.9-10.0.0.1", "host", "1-"})
    void whatIsNoRangeOfAddressesIsRefusedInWords(String range) {
        assertTrue(
                refusal(GatewaySettings.TRUSTED_NETWORKS, range)
                        .contains("trusted-network=" + range + " is no address range, as"));
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
