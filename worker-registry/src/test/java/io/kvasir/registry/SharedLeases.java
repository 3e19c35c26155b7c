package io.kvasir.registry;

import java.time.Duration;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * Keys that several stores have in common, each store's under a lease of its own as in etcd, or
 * each key's own as in NATS. A lease ends when the test says so. One thread at a time.
 */
final class SharedLeases {
    private final boolean areRewritten;
    private final Map<String, Stored> keys = new TreeMap<>();
    private final Map<String, Client> holders = new TreeMap<>(); // whose lease keeps a key
    private long revisions;

    /**
     * @param areRewritten whether a renewal writes the value; else it leaves the key as it is
     */
    SharedLeases(boolean areRewritten) {
        this.areRewritten = areRewritten;
    }

    Stored get(String key) {
        return keys.get(key);
    }

    /** Whether a process has put it that has it still. */
    boolean isLeased(String key) {
        return holders.get(key) != null;
    }

    /** Writes as a program does that has no lease. */
    void force(String key, byte[] value) {
        write(key, value, null);
    }

    void delete(String key) {
        keys.remove(key);
        holders.remove(key);
    }

    private long write(String key, byte[] value, Client holder) {
        keys.put(key, new Stored(key, value, ++revisions));
        holders.put(key, holder);
        return revisions;
    }

    private long revision(String key) {
        return keys.containsKey(key) ? keys.get(key).revision() : LeasedStore.ABSENT;
    }

    /** What one process has of it. Its registrar renews when the test says so, never by itself. */
    final class Client implements LeasedStore {
        private final Random random;
        private int faults; // of ten calls, so many fail

        /**
         * @param random of faults
         */
        Client(Random random) {
            this.random = random;
        }

        /** Of ten calls so many fail from now on: half of these reach the store. */
        void faults(int ofTen) {
            faults = ofTen;
        }

        /** Its lease ends; it has another one from now on. */
        void expire() {
            keys.keySet().removeIf(key -> equals(holders.get(key)));
            holders.values().removeIf(this::equals);
        }

        private boolean fails() {
            return random.nextInt(10) < faults;
        }

        private <T> T answered(T answer, boolean failed) {
            if (failed) {
                throw new RegistryException(RegistryException.Kind.UNAVAILABLE, "no answer");
            }
            return answer;
        }

        private boolean arrives(boolean failed) {
            return !failed || random.nextBoolean();
        }

        @Override
        public String kind() {
            return "shared";
        }

        /** The renewing thread asks for it before all else, and waits here until it is closed. */
        @Override
        public Duration ttl() {
            try {
                Thread.sleep(Duration.ofHours(1));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return Duration.ofHours(1);
        }

        @Override
        public Stored get(String key) {
            return answered(keys.get(key), fails());
        }

        @Override
        public long put(String key, byte[] value, long revision) {
            final boolean failed = fails();
            long now = CONFLICT;
            if (arrives(failed) && revision(key) == revision) {
                now = write(key, value, this);
            }
            return answered(now, failed);
        }

        @Override
        public void keepAlive() {
            answered(null, fails());
        }

        @Override
        public long renew(String key, byte[] value, long revision) {
            if (areRewritten) {
                return put(key, value, revision);
            }
            return answered(
                    revision(key) == revision && equals(holders.get(key)) ? revision : CONFLICT,
                    fails());
        }

        @Override
        public boolean delete(String key, long revision) {
            final boolean failed = fails();
            final boolean deleted =
                    arrives(failed) && keys.containsKey(key) && revision(key) == revision;
            if (deleted) {
                SharedLeases.this.delete(key);
            }
            return answered(deleted, failed);
        }

        @Override
        public void watch(String prefix, Watcher watcher) {
            throw new UnsupportedOperationException("registrars watch nothing");
        }

        @Override
        public void close() {
            expire();
        }
    }
}
