package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** NIXL's transport keeps the contract over the loopback library, and gives every handle back. */
class FakeNixlContractTest extends KvTransportContract {
    private static final long SLOW_MICROS = 10_000_000;

    private final FakeNixl fake = FakeNixl.get();

    @Override
    protected KvTransport open(String name) {
        return fake.transport(name);
    }

    @Override
    protected boolean slowDown() {
        fake.delay("decode", SLOW_MICROS);
        return true;
    }

    @Override
    protected void closed() {
        fake.heal();
        assertEquals(0, fake.liveHandles());
    }
}
