package io.kvasir.nixl.transfer;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.panama.NixlProbe;

/** The installed NIXL that tests run against. */
final class NixlWheel {
    private NixlWheel() {}

    /** Ends the test as skipped where no NIXL is named. */
    static void assumeInstalled() {
        assumeTrue(
                System.getenv(NixlProbe.LIBRARY_VARIABLE) != null
                        || System.getenv(NixlProbe.PREFIX_VARIABLE) != null,
                "skipped: no NIXL named by "
                        + NixlProbe.LIBRARY_VARIABLE
                        + " or "
                        + NixlProbe.PREFIX_VARIABLE);
    }
}
