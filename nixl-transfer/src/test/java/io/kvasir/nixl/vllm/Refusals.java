package io.kvasir.nixl.vllm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.function.Executable;

/** Checks refusals by kind and by what they name. */
final class Refusals {
    private Refusals() {}

    static VllmPeerException refused(
            VllmPeerException.Kind kind, Executable call, String... named) {
        final VllmPeerException e = assertThrows(VllmPeerException.class, call);
        assertEquals(kind, e.kind(), e.getMessage());
        for (String part : named) {
            assertTrue(e.getMessage().contains(part), e.getMessage() + " lacks " + part);
        }
        return e;
    }
}
