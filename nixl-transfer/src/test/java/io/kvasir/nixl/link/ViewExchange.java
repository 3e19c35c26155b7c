package io.kvasir.nixl.link;

import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.PeerDirectory;
import io.kvasir.nixl.exchange.PeerRecord;

import java.time.Duration;

/** An exchange within one object, for tests of what is above it. */
final class ViewExchange implements MetadataExchange {
    private final PeerDirectory view = new PeerDirectory();

    @Override
    public void publish(PeerRecord record) {
        PeerDirectory.requireNewer(record, view.get(record.name()));
        view.offer(record, this, 0);
    }

    @Override
    public void withdraw(String name) {
        view.removed(name, this);
    }

    @Override
    public PeerRecord find(String name, Duration patience) {
        return view.find(name, patience);
    }

    @Override
    public Watch watch(String name, Listener listener) {
        return view.watch(name, listener);
    }

    @Override
    public void close() {}
}
