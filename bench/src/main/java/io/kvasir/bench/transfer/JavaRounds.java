package io.kvasir.bench.transfer;

/** The calls made through Java, by one of its layers. */
final class JavaRounds implements Rounds {
    private static final byte[] MESSAGE = new byte[16];

    private final RequestCalls calls;
    private final long[] requests = new long[BATCH];
    private final boolean[] running = new boolean[BATCH];

    JavaRounds(RequestCalls calls) {
        this.calls = calls;
    }

    @Override
    public long run(Kind kind, int argument) {
        return switch (kind) {
            case PREPARE -> prepare();
            case MAKE -> make(argument, null);
            case MAKE_NOTIFIED -> make(argument, MESSAGE);
            case RELEASE -> release(argument);
            case POST -> post(argument);
            case STATUS -> status(argument == 1);
            case NOTIFICATIONS -> notifications(argument);
            case TRANSFER -> transfer(argument);
        };
    }

    private long prepare() {
        final long startNs = System.nanoTime();
        final long list = calls.preparePeer();
        final long tookNs = System.nanoTime() - startNs;
        calls.releaseList(list);
        return tookNs;
    }

    private long make(int count, byte[] notification) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(count, notification);
        }
        final long tookNs = System.nanoTime() - startNs;
        for (int i = 0; i < BATCH; i++) {
            calls.release(requests[i]);
        }
        return tookNs;
    }

    private long release(int count) {
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(count, null);
        }
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            calls.release(requests[i]);
        }
        return System.nanoTime() - startNs;
    }

    private long post(int count) {
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(count, null);
        }
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            running[i] = calls.post(requests[i]);
        }
        final long tookNs = System.nanoTime() - startNs;
        for (int i = 0; i < BATCH; i++) {
            await(i);
            calls.release(requests[i]);
        }
        return tookNs;
    }

    private void await(int i) {
        while (running[i]) {
            running[i] = calls.isRunning(requests[i]);
        }
    }

    private long status(boolean expected) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < REPEATS; i++) {
            if (calls.isRunning(requests[0]) != expected) {
                throw new IllegalStateException("a request is running: " + !expected);
            }
        }
        return System.nanoTime() - startNs;
    }

    private long notifications(int expected) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < REPEATS; i++) {
            if (calls.notifications() != expected) {
                throw new IllegalStateException("a notification came that was never sent");
            }
        }
        return System.nanoTime() - startNs;
    }

    private long transfer(int count) {
        final long startNs = System.nanoTime();
        final long request = calls.make(count, null);
        boolean isRunning = calls.post(request);
        while (isRunning) {
            isRunning = calls.isRunning(request);
        }
        final long tookNs = System.nanoTime() - startNs;
        calls.release(request);
        return tookNs;
    }

    @Override
    public void hold(boolean hangs) {
        requests[0] = calls.make(1, null);
        running[0] = calls.post(requests[0]);
        if (!hangs) {
            await(0);
        }
    }

    @Override
    public void drop() {
        calls.release(requests[0]);
    }

    @Override
    public void lists(int descriptors, long descriptorBytes, int[] chosen) {
        calls.lists(descriptors, descriptorBytes, chosen);
    }
}
