package io.kvasir.nats.state;

import io.kvasir.nats.NatsAccess;
import io.kvasir.registry.LeaseLock;

import java.util.Locale;
import java.util.function.Consumer;

/** Stores that tests of other packages end or delay at a step. */
public final class SteppedStores {
    private SteppedStores() {}

    /** A store that says after which step it is, in small letters. */
    public static NatsStateStore open(
            NatsAccess access, String bucket, LeaseLock lock, Consumer<String> steps) {
        return new NatsStateStore(
                access, bucket, lock, step -> steps.accept(step.name().toLowerCase(Locale.ROOT)));
    }
}
