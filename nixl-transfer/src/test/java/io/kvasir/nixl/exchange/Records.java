package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Records for tests, and a listener that waits for them. */
public final class Records {
    /** Longest wait for what should come soon. */
    static final int PATIENCE_SECONDS = 60;

    public static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, 8, 2, 512);

    private Records() {}

    /** A record whose metadata is its name. */
    public static PeerRecord record(String name, long incarnation, long generation) {
        return new PeerRecord(
                name,
                incarnation,
                generation,
                name.getBytes(StandardCharsets.US_ASCII),
                new PeerMemory.Pool(LAYOUT, 4096),
                "");
    }

    /** Keeps what happens, in order. */
    public static final class Received implements MetadataExchange.Listener {
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

        @Override
        public void onRecord(Change change, PeerRecord record) {
            events.add(change + " " + record.name() + " " + version(record));
        }

        private static String version(PeerRecord record) {
            return record.incarnation() + "." + record.generation();
        }

        /** The next event, whatever it is; null if none comes. */
        public String next() throws InterruptedException {
            return events.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }

        /** What has come and was not yet taken. */
        public int waiting() {
            return events.size();
        }
    }
}
