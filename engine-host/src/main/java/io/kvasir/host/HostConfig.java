package io.kvasir.host;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Registration;

import java.net.URI;
import java.time.Duration;
import java.util.function.Consumer;

/** What a host serves, as set on its builder. */
record HostConfig(
        Generator generator,
        EngineNames names,
        String host,
        int port,
        URI advertisedOrNull,
        int maxConcurrent,
        int maxBodyBytes,
        int dpRanks,
        int blockSize,
        long kvBlocks,
        int maxModelLength,
        PromptTokenizer tokenizer,
        Duration drainTime,
        Registering registeringOrNull) {

    /** Where it is registered. */
    record Registering(
            LeasedStore store, InstanceId id, Consumer<Registration.Builder> described) {}
}
