package io.kvasir.testsupport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/** Ports for servers that are given theirs, or bind it again. */
public final class FreePorts {
    private FreePorts() {}

    /**
     * Finds ports that were free a moment ago. They lie below those that the system gives to
     * outgoing connections, which therefore do not take them while a server is down.
     *
     * @param count ports, consecutive
     * @return the first of them
     */
    public static int run(int count) {
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
