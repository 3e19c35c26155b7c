package io.kvasir.router.replica;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Links in memory and in virtual time: messages are lost, doubled and late by chance, and pass no
 * partition. One thread.
 */
public final class ReplicaHub {
    private final Random random;
    private final List<HubLink> links = new ArrayList<>();
    private final PriorityQueue<Delivery> underWay =
            new PriorityQueue<>(
                    Comparator.comparingLong(Delivery::dueNs).thenComparingLong(Delivery::order));
    private final Set<Long> cut = new HashSet<>();
    private long nowNs;
    private long sent;
    private double loss;
    private double doubled;
    private long maxDelayNs;

    private record Delivery(long dueNs, long order, HubLink to, ReplicaMessage message) {}

    /** A hub that delivers everything at the next {@link #advance}, in order. */
    public ReplicaHub(Random random) {
        this.random = random;
    }

    /** What happens to messages that are sent from now on. */
    public void faults(double lost, double twice, long delayNs) {
        loss = lost;
        doubled = twice;
        maxDelayNs = delayNs;
    }

    /** A link of a further router. */
    public HubLink open() {
        final HubLink link = new HubLink(links.size());
        links.add(link);
        return link;
    }

    /** Lets nothing pass between two links, or everything again. */
    public void cut(HubLink a, HubLink b, boolean apart) {
        final long pair = (long) Math.min(a.number, b.number) << 32 | Math.max(a.number, b.number);
        if (apart) {
            cut.add(pair);
        } else {
            cut.remove(pair);
        }
    }

    /** Ends all partitions. */
    public void heal() {
        cut.clear();
    }

    /** Delivers what is due by a time. */
    public void advance(long timeNs) {
        nowNs = timeNs;
        while (!underWay.isEmpty() && underWay.peek().dueNs <= timeNs) {
            final Delivery next = underWay.poll();
            if (next.to.receiver != null && !next.to.closed) {
                next.to.receiver.accept(next.message);
            }
        }
    }

    private void broadcast(HubLink from, ReplicaMessage message) {
        for (HubLink to : links) {
            final long pair =
                    (long) Math.min(from.number, to.number) << 32
                            | Math.max(from.number, to.number);
            if (cut.contains(pair)) {
                continue;
            }
            final int copies = random.nextDouble() < doubled ? 2 : 1;
            for (int i = 0; i < copies; i++) {
                if (random.nextDouble() >= loss) {
                    final long delayNs = maxDelayNs == 0 ? 0 : random.nextLong(maxDelayNs);
                    underWay.add(new Delivery(nowNs + delayNs, sent++, to, message));
                }
            }
        }
    }

    /** One router's link, which gets its own messages, too. */
    public final class HubLink implements ReplicaLink {
        private final int number;
        private Consumer<ReplicaMessage> receiver;
        private boolean closed;

        private HubLink(int number) {
            this.number = number;
        }

        @Override
        public void start(Consumer<ReplicaMessage> to) {
            receiver = to;
        }

        @Override
        public boolean send(ReplicaMessage message) {
            if (closed) {
                return false;
            }
            broadcast(this, message);
            return true;
        }

        @Override
        public long dropped() {
            return 0;
        }

        @Override
        public void close() {
            closed = true;
        }
    }
}
