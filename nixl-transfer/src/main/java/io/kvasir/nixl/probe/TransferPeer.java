package io.kvasir.nixl.probe;

import io.kvasir.nixl.transport.KvTransport;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The other process of a measurement: registers memory, prints where it lies and how to reach it,
 * and serves it until its input ends.
 */
public final class TransferPeer implements AutoCloseable {
    private static final int END_SECONDS = 10;

    private final Process process;
    private final long base;
    private final byte[] metadata;

    private TransferPeer(Process process, long base, byte[] metadata) {
        this.process = process;
        this.base = base;
        this.metadata = metadata;
    }

    /**
     * Starts an attentive one with this JVM's class path.
     *
     * @param kind what moves the blocks
     * @param bytes of its memory
     * @return owned by the caller; closing it ends the process
     * @throws IOException if it cannot be started or ends before it can be reached
     */
    public static TransferPeer start(TransferEnd.Kind kind, long bytes) throws IOException {
        return start(kind, bytes, TransferEnd.Manner.ATTENTIVE);
    }

    /**
     * Starts one with this JVM's class path.
     *
     * @param kind what moves the blocks
     * @param bytes of its memory
     * @param manner how much it does by itself
     * @return owned by the caller; closing it ends the process
     * @throws IOException if it cannot be started or ends before it can be reached
     */
    public static TransferPeer start(TransferEnd.Kind kind, long bytes, TransferEnd.Manner manner)
            throws IOException {
        final ProcessBuilder builder =
                new ProcessBuilder(
                        ChildJvm.command(
                                TransferPeer.class,
                                kind.name(),
                                Long.toString(bytes),
                                manner.name()));
        builder.environment().remove("UCX_PROTO_INFO"); // it would print between our lines
        final Process process = builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
        final BufferedReader out =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
        final String base = out.readLine();
        final String metadata = out.readLine();
        if (metadata == null) {
            process.destroyForcibly();
            throw new IOException("the peer process of the measurement ended at once");
        }
        return new TransferPeer(
                process, Long.parseLong(base), Base64.getDecoder().decode(metadata));
    }

    /**
     * Where its memory lies.
     *
     * @return address in its process
     */
    public long base() {
        return base;
    }

    /**
     * What connects to it.
     *
     * @return for {@link KvTransport#connect}, not copied
     */
    public byte[] metadata() {
        return metadata;
    }

    /**
     * The peer itself.
     *
     * @param args kind of transport, bytes of memory, manner
     */
    public static void main(String[] args) {
        final TransferEnd.Kind kind = TransferEnd.Kind.valueOf(args[0].toUpperCase(Locale.ROOT));
        final TransferEnd.Manner manner = TransferEnd.Manner.valueOf(args[2]);
        try (TransferEnd end = TransferEnd.open(kind, Long.parseLong(args[1]), manner)) {
            System.out.println(end.pool().base());
            System.out.println(Base64.getEncoder().encodeToString(end.transport().metadata()));
            final Thread input =
                    Thread.ofPlatform().daemon().name("input").start(TransferPeer::readToTheEnd);
            final KvTransport transport = end.transport();
            while (input.isAlive()) {
                if (transport.notifications((peer, message) -> {}) == 0) {
                    LockSupport.parkNanos(manner.peerPauseNs());
                }
            }
        }
    }

    private static void readToTheEnd() {
        try {
            while (System.in.read() >= 0) {
                Thread.onSpinWait();
            }
        } catch (IOException e) {
            Thread.currentThread().interrupt(); // the parent is gone: the same as the end
        }
    }

    @Override
    public void close() throws IOException {
        process.getOutputStream().close();
        try {
            if (!process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
