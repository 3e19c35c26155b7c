package io.kvasir.chronicle;

import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreProvider;

import java.io.IOException;
import java.nio.file.Path;

/** Opens {@link ChronicleStateStore}s. */
public final class ChronicleStateStoreProvider implements StateStoreProvider {
    /** For {@link java.util.ServiceLoader}. */
    public ChronicleStateStoreProvider() {}

    @Override
    public StateStore open(Path folder, Path shared) throws IOException {
        return new ChronicleStateStore(folder, shared);
    }
}
