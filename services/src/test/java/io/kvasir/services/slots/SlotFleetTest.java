package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.replica.ReplicaWorker;
import io.kvasir.services.http.GroupKey;

import org.junit.jupiter.api.Test;

class SlotFleetTest {
    private static final int MIB = 1 << 20;

    private final SlotFleet fleet = new SlotFleet();

    private ReplicaWorker add(String model, String group, int slot) {
        fleet.add(new GroupKey(model, group), 16, 7, 0, slot, 0);
        return fleet.at(slot, 0);
    }

    @Test
    void aWorkerIsFoundByTheNameThatItHasElsewhereUntilItIsRemoved() {
        final ReplicaWorker worker = add("m", "g", 3);
        assertEquals("1:m/1:g/16/7/0", worker.name());
        assertEquals(3, fleet.find(worker).slot());
        assertNull(fleet.at(3, 1), "another tenant of the slot");
        assertNull(fleet.find(new ReplicaWorker(7, worker.name(), 1)));
        final Object before = fleet.version();
        fleet.remove(3);
        assertNull(fleet.find(worker));
        assertNull(fleet.at(3, 0));
        assertNotEquals(before, fleet.version());
        final Object after = fleet.version();
        fleet.remove(3);
        assertEquals(after, fleet.version());
    }

    @Test
    void namesOfModelsMakeNoLongNamesOfWorkersAndStayApart() {
        final String model = "m".repeat(MIB);
        final ReplicaWorker one = add(model, model, 0);
        final ReplicaWorker two = add(model, model.substring(1) + "n", 1);
        assertTrue(one.name().length() < 256, one::name);
        assertNotEquals(one.name(), two.name());
        assertEquals(0, fleet.find(one).slot());
        assertEquals(1, fleet.find(two).slot());
    }
}
