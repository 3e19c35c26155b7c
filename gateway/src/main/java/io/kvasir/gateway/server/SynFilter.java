package io.kvasir.gateway.server;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Has a listening socket ignore attempts to connect, while connections that it has answered are
 * still completed and accepted. Closed without it, the system resets what was connected after the
 * last accept. A client repeats an attempt that was ignored after a second, and is refused then.
 *
 * <p>A socket filter of the kernel ({@code SO_ATTACH_FILTER}) drops every segment with SYN. It
 * needs Linux and {@code --enable-native-access}, but no privilege. The JDK tells no descriptor of
 * a channel: it is found among those of the process by its state and address.
 */
final class SynFilter {
    private static final Logger LOG = LoggerFactory.getLogger(SynFilter.class);

    private static final int SOL_SOCKET = 1;
    private static final int SO_ATTACH_FILTER = 26;
    private static final int SO_ACCEPTCONN = 30;
    private static final int AF_INET = 2;
    private static final int AF_INET6 = 10;
    private static final int ADDRESS_BYTES = 128; // struct sockaddr_storage
    private static final int PORT_OFFSET = 2;
    private static final int IPV4_OFFSET = 4;
    private static final int IPV6_OFFSET = 8;

    private static final ValueLayout.OfShort NETWORK_SHORT =
            ValueLayout.JAVA_SHORT.withOrder(ByteOrder.BIG_ENDIAN);

    /**
     * A program of the classic packet filter, {@code struct sock_filter} each: code 16 bits, jump
     * if true 8, jump if false 8, operand 32. It sees a segment from its TCP header on.
     */
    private static final long[] DROP_SYN = {
        instruction(0x30, 0, 0, 13), // load the byte of flags
        instruction(0x54, 0, 0, 0x02), // keep SYN
        instruction(0x15, 0, 1, 0x02), // set?
        instruction(0x06, 0, 0, 0), // then drop the segment
        instruction(0x06, 0, 0, 0xFFFF_FFFFL), // else keep all of it
    };

    private SynFilter() {}

    private static long instruction(int code, int ifTrue, int ifFalse, long operand) {
        return code | (long) ifTrue << 16 | (long) ifFalse << 24 | operand << 32;
    }

    /**
     * Has a port ignore attempts to connect from now on. There is no way back.
     *
     * @return whether it does; false where the system or the JVM does not allow it
     */
    static boolean attach(ServerSocketChannel port) {
        if (Calls.ALL.isEmpty()) {
            return false;
        }
        final Calls calls = Calls.ALL.get();
        try (Arena arena = Arena.ofConfined()) {
            final int descriptor =
                    descriptor(calls, (InetSocketAddress) port.getLocalAddress(), arena);
            return descriptor >= 0 && attach(calls, descriptor, arena);
        } catch (IOException e) {
            LOG.debug("no filter of new connections", e);
            return false;
        }
    }

    private static boolean attach(Calls calls, int descriptor, Arena arena) {
        final MemorySegment program = arena.allocateFrom(ValueLayout.JAVA_LONG, DROP_SYN);
        final MemorySegment described = arena.allocate(16, 8); // struct sock_fprog
        described.set(ValueLayout.JAVA_SHORT, 0, (short) DROP_SYN.length);
        described.set(ValueLayout.ADDRESS, 8, program);
        return calls.setOption(descriptor, SO_ATTACH_FILTER, described) == 0;
    }

    /** The descriptor of the socket that listens at an address, or -1. */
    private static int descriptor(Calls calls, InetSocketAddress bound, Arena arena)
            throws IOException {
        final MemorySegment scratch = arena.allocate(ADDRESS_BYTES, 8);
        final MemorySegment length = arena.allocate(ValueLayout.JAVA_INT);
        try (DirectoryStream<Path> all = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path each : all) {
                final int descriptor = Integer.parseInt(each.getFileName().toString());
                if (listens(calls, descriptor, scratch, length)
                        && isBoundTo(calls, descriptor, bound, scratch, length)) {
                    return descriptor;
                }
            }
        }
        return -1;
    }

    private static boolean listens(
            Calls calls, int descriptor, MemorySegment value, MemorySegment length) {
        length.set(ValueLayout.JAVA_INT, 0, Integer.BYTES);
        return calls.getOption(descriptor, SO_ACCEPTCONN, value, length) == 0
                && value.get(ValueLayout.JAVA_INT, 0) != 0;
    }

    private static boolean isBoundTo(
            Calls calls,
            int descriptor,
            InetSocketAddress bound,
            MemorySegment address,
            MemorySegment length)
            throws UnknownHostException {
        length.set(ValueLayout.JAVA_INT, 0, ADDRESS_BYTES);
        if (calls.getName(descriptor, address, length) != 0) {
            return false;
        }
        final byte[] host =
                switch (address.get(ValueLayout.JAVA_SHORT, 0)) {
                    case AF_INET -> bytes(address, IPV4_OFFSET, 4);
                    case AF_INET6 -> bytes(address, IPV6_OFFSET, 16);
                    default -> null;
                };
        if (host == null
                || Short.toUnsignedInt(address.get(NETWORK_SHORT, PORT_OFFSET))
                        != bound.getPort()) {
            return false;
        }
        final InetAddress found = InetAddress.getByAddress(host);
        return found.isAnyLocalAddress()
                ? bound.getAddress().isAnyLocalAddress()
                : found.equals(withoutScope(bound.getAddress()));
    }

    /** The scope of a link-local address is not among its bytes. */
    private static InetAddress withoutScope(InetAddress address) throws UnknownHostException {
        return InetAddress.getByAddress(address.getAddress());
    }

    private static byte[] bytes(MemorySegment address, long offset, int length) {
        return address.asSlice(offset, length).toArray(ValueLayout.JAVA_BYTE);
    }

    /** What is called of the C library. */
    private record Calls(
            MethodHandle getsockopt, MethodHandle getsockname, MethodHandle setsockopt) {
        static final Optional<Calls> ALL = link();

        @SuppressWarnings("restricted") // asked for only where native access is enabled
        private static Optional<Calls> link() {
            if (!SynFilter.class.getModule().isNativeAccessEnabled()
                    || !System.getProperty("os.name", "").equals("Linux")) {
                return Optional.empty();
            }
            final Linker linker = Linker.nativeLinker();
            return Optional.of(
                    new Calls(
                            linker.downcallHandle(
                                    linker.defaultLookup().findOrThrow("getsockopt"),
                                    FunctionDescriptor.of(
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.ADDRESS,
                                            ValueLayout.ADDRESS)),
                            linker.downcallHandle(
                                    linker.defaultLookup().findOrThrow("getsockname"),
                                    FunctionDescriptor.of(
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.ADDRESS,
                                            ValueLayout.ADDRESS)),
                            linker.downcallHandle(
                                    linker.defaultLookup().findOrThrow("setsockopt"),
                                    FunctionDescriptor.of(
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.JAVA_INT,
                                            ValueLayout.ADDRESS,
                                            ValueLayout.JAVA_INT))));
        }

        int getOption(int descriptor, int option, MemorySegment value, MemorySegment length) {
            try {
                return (int) getsockopt.invokeExact(descriptor, SOL_SOCKET, option, value, length);
            } catch (Throwable t) {
                throw new AssertionError("getsockopt does not throw", t);
            }
        }

        int getName(int descriptor, MemorySegment address, MemorySegment length) {
            try {
                return (int) getsockname.invokeExact(descriptor, address, length);
            } catch (Throwable t) {
                throw new AssertionError("getsockname does not throw", t);
            }
        }

        int setOption(int descriptor, int option, MemorySegment value) {
            try {
                return (int)
                        setsockopt.invokeExact(
                                descriptor, SOL_SOCKET, option, value, (int) value.byteSize());
            } catch (Throwable t) {
                throw new AssertionError("setsockopt does not throw", t);
            }
        }
    }
}
