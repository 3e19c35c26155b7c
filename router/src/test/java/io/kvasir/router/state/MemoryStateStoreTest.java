package io.kvasir.router.state;

import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreContract;

class MemoryStateStoreTest extends StateStoreContract {
    private final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();

    @Override
    protected StateStore openAgain() {
        return new MemoryStateStore(memory);
    }
}
