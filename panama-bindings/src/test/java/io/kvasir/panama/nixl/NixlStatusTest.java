package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Optional;

class NixlStatusTest {
    @ParameterizedTest
    @EnumSource
    void everyStatusIsFoundByItsCode(NixlStatus status) {
        assertEquals(Optional.of(status), NixlStatus.of(status.code()));
    }

    @Test
    void doneAndRunningAreResults() {
        assertSame(NixlStatus.SUCCESS, NixlStatus.check(0, "f", "s"));
        assertSame(NixlStatus.IN_PROGRESS, NixlStatus.check(1, "f", "s"));
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, -2, -6, -7, 2, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void everythingElseIsAnExceptionThatNamesFunctionAndCode(int code) {
        final NixlException e =
                assertThrows(
                        NixlException.class,
                        () -> NixlStatus.check(code, "nixl_capi_create_backend", "plugin=UCX"));
        assertEquals(code, e.code());
        assertEquals("nixl_capi_create_backend", e.function());
        assertEquals(NixlStatus.of(code), e.status());
        assertTrue(e.getMessage().contains("(" + code + ")"), e.getMessage());
        assertTrue(e.getMessage().contains("plugin=UCX"), e.getMessage());
    }
}
