package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Cards for tests, and a listener that waits for them. */
public final class Cards {
    /** Longest wait for what should come soon. */
    static final int PATIENCE_SECONDS = 30;

    public static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, 8, 2, 512);

    private Cards() {}

    /** A card whose metadata is its name. */
    public static PeerRecord card(String name, long incarnation, long generation) {
        return new PeerRecord(
                name,
                incarnation,
                generation,
                name.getBytes(StandardCharsets.US_ASCII),
                new PeerMemory.Pool(LAYOUT, 4096),
                "");
    }

    /** Keeps what happens, in order. */
    public static final class Heard implements MetadataExchange.Listener {
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

        @Override
        public void onCard(Change change, PeerRecord card) {
            events.add(change + " " + card.name() + " " + version(card));
        }

        private static String version(PeerRecord card) {
            return card.incarnation() + "." + card.generation();
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
