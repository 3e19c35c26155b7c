package io.kvasir.nixl.loopback;

import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportContract;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;

import java.io.IOException;
import java.nio.file.Path;

/** The loopback transport keeps the contract, in shared memory and in memory of the process. */
class LoopbackContractTest {
    private Path folder;

    @BeforeEach
    void makeFolder() throws IOException {
        folder = Loopbacks.folder();
    }

    abstract class Ends extends KvTransportContract {
        @Override
        protected KvTransport open(String name) {
            return new LoopbackTransport(name, Loopbacks.config(folder));
        }

        @Override
        protected boolean slowDown() {
            return true; // chunks are smaller than all blocks
        }

        @Override
        protected void closed() throws IOException {
            Loopbacks.deleteEmpty(folder);
        }
    }

    @Nested
    class InSharedMemory extends Ends {
        @Override
        protected KvPool pool(KvLayout layout, KvTransport owner) {
            return ((LoopbackTransport) owner).pool(layout);
        }
    }

    @Nested
    class InMemoryOfTheProcess extends Ends {}
}
