package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.protocol.handoff.KvTransferParams;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

class PrefillLeaseTest {
    private static final long START = Long.MAX_VALUE - s(7); // nanoTime may wrap at any moment

    private static long s(long seconds) {
        return TimeUnit.SECONDS.toNanos(seconds);
    }

    private static PrefillLease recorded() {
        return PrefillLease.of(
                Golden.params(), VllmEngine.of(Golden.agent()), 1, LeaseTerms.DEFAULT, START);
    }

    private static PrefillLease lease(String requestId, String more, long clockOffsetNs) {
        final VllmAgentMetadata metadata = Golden.metadata("e", Golden.region("r", 0, 4_096, 16));
        return PrefillLease.of(
                Golden.params("e", requestId, "[[1]]", more),
                VllmEngine.of(new VllmAgent("hash", 0, 0, metadata, clockOffsetNs, 1, 0)),
                1,
                LeaseTerms.DEFAULT,
                START);
    }

    @Test
    void aRecordedPrefillHoldsItsBlocks() {
        final PrefillLease lease = recorded();
        assertEquals("cmpl-golden-1-0-a2c7c6e1", lease.requestId());
        assertEquals("5a4df294-8d02-426b-967e-f1b6cf609ca7", lease.engineId());
        assertEquals(List.of(List.of(1, 2, 3, 4, 5, 6, 7, 8)), lease.blocks().groups());
        assertEquals(PrefillLease.State.HELD, lease.state(START));
        assertEquals(START + s(30), lease.expiresAtNs());
        assertArrayEquals(
                "cmpl-golden-1-0-a2c7c6e1:1".getBytes(StandardCharsets.UTF_8),
                lease.completion().encode());
        assertArrayEquals(
                "HB:cmpl-golden-1-0-a2c7c6e1".getBytes(StandardCharsets.UTF_8),
                lease.heartbeat().encode());
    }

    @Test
    void itEndsAMarginBeforeTheServerGivesTheBlocksUp() {
        final PrefillLease lease = recorded();
        assertEquals(PrefillLease.State.HELD, lease.state(START + s(25) - 1));
        lease.requireHeld(START + s(25) - 1);
        refused(
                VllmPeerException.Kind.EXPIRED,
                () -> lease.requireHeld(START + s(25)),
                "cmpl-golden-1-0-a2c7c6e1",
                "30 s ends 5000 ms from now",
                "kv_lease_duration");
        assertEquals(PrefillLease.State.EXPIRED, lease.state(START)); // once seen, it stays
    }

    @Test
    void heartbeatsAreDueEverySixthAndLeaveTwoThirds() {
        final PrefillLease lease = recorded();
        assertFalse(lease.heartbeatDue(START + s(5) - 1));
        assertTrue(lease.heartbeatDue(START + s(5)));
        lease.heartbeatSent(START + s(5)); // 5 + 20 is before 30: the end stays
        assertEquals(START + s(30), lease.expiresAtNs());
        assertEquals(START + s(10), lease.nextHeartbeatNs());
        for (int second = 10; second <= 600; second += 5) {
            assertTrue(lease.heartbeatDue(START + s(second)));
            lease.heartbeatSent(START + s(second));
            assertEquals(START + s(second + 20), lease.expiresAtNs());
        }
        assertEquals(PrefillLease.State.HELD, lease.state(START + s(614)));
        assertEquals(PrefillLease.State.EXPIRED, lease.state(START + s(615)));
        assertFalse(lease.heartbeatDue(START + s(620)));
        refused(VllmPeerException.Kind.EXPIRED, () -> lease.heartbeatSent(START + s(620)), "cmpl");
    }

    @Test
    void releasedBlocksAreNotRead() {
        final PrefillLease lease = recorded();
        lease.released();
        assertEquals(PrefillLease.State.RELEASED, lease.state(START + s(100)));
        assertFalse(lease.heartbeatDue(START + s(6)));
        refused(
                VllmPeerException.Kind.RELEASED,
                () -> lease.requireHeld(START),
                "cmpl-golden-1-0-a2c7c6e1");
    }

    @ParameterizedTest
    @CsvSource({"0, 100", "-40, 140", "99, 1"})
    void aStatedDeadlineIsConvertedByTheClocksOffset(long offsetSeconds, long expectedSeconds) {
        final PrefillLease lease =
                lease("r", ",\"remote_blocks_expiry_time\":100.0", s(offsetSeconds));
        assertEquals(s(expectedSeconds), lease.expiresAtNs());
    }

    @Test
    void aNameWithACommaCannotBeExtended() {
        final PrefillLease lease = lease("a,b", "", 0);
        assertFalse(lease.extendable());
        assertFalse(lease.heartbeatDue(START + s(6)));
        assertThrows(IllegalArgumentException.class, lease::heartbeat);
        assertEquals(PrefillLease.State.HELD, lease.state(START + s(6)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ",\"pp_size\":2",
                ",\"dcp_size\":4",
                ",\"transfer_mode\":\"push\"",
                ",\"pp_size\":1.5"
            })
    void enginesOfSeveralRanksAndPushAreRefused(String more) {
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> lease("r", more, 0),
                more.substring(2, more.indexOf('"', 2)));
        lease("r", ",\"pp_size\":null,\"dcp_size\":1,\"transfer_mode\":\"pull\"", 0);
    }

    @Test
    void answersOfOthersAreRefused() {
        refused(
                VllmPeerException.Kind.OTHER_ENGINE,
                () ->
                        PrefillLease.of(
                                Golden.params("x", "r", "[[1]]", ""),
                                VllmEngine.of(Golden.agent()),
                                1,
                                LeaseTerms.DEFAULT,
                                START),
                "engine x");
        refused(
                VllmPeerException.Kind.MALFORMED,
                () ->
                        PrefillLease.of(
                                KvTransferParams.prefillRequest(),
                                VllmEngine.of(Golden.agent()),
                                1,
                                LeaseTerms.DEFAULT,
                                START),
                "remote_engine_id");
    }

    @Test
    void termsAreWholeSecondsAsTheServerCountsThem() {
        final LeaseTerms terms = new LeaseTerms(20, 0);
        assertEquals(s(20), terms.leaseNs());
        assertEquals(s(3), terms.heartbeatNs());
        assertEquals(s(13), terms.extensionNs());
        assertThrows(IllegalArgumentException.class, () -> new LeaseTerms(5, 0));
        assertThrows(IllegalArgumentException.class, () -> new LeaseTerms(30, s(30)));
        assertThrows(IllegalArgumentException.class, () -> new LeaseTerms(30, -1));
    }
}
