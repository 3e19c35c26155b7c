package io.kvasir.sim;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/** Free ports for tests that need neighbours. */
final class Ports {
    private Ports() {}

    /** First of some consecutive ports that were free a moment ago, below the ephemeral range. */
    static int freeRun(int count) {
        for (int tries = 0; tries < 200; tries++) {
            final int first = ThreadLocalRandom.current().nextInt(20_000, 30_000);
            int free = 0;
            while (free < count && isFree(first + free)) {
                free++;
            }
            if (free == count) {
                return first;
            }
        }
        throw new AssertionError("no run of free ports, count=" + count);
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return socket.isBound();
        } catch (IOException e) {
            return false;
        }
    }
}
