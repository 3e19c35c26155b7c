package io.kvasir.opstreams.kvops;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Linux's own answers: clock_gettime(CLOCK_THREAD_CPUTIME_ID) and getrusage(RUSAGE_THREAD). */
@SuppressWarnings("restricted") // two calls of libc that fill memory of known size
final class LinuxThreadUsage extends ThreadUsage {
    private static final int CLOCK_THREAD_CPUTIME_ID = 3;
    private static final int RUSAGE_THREAD = 1;
    private static final boolean LINUX_64 =
            System.getProperty("os.name").toLowerCase(Locale.ROOT).contains("linux")
                    && ADDRESS.byteSize() == Long.BYTES;
    private static final MethodHandle CLOCK_GETTIME = link("clock_gettime");
    private static final MethodHandle GETRUSAGE = link("getrusage");

    private final MemorySegment time =
            Arena.ofAuto().allocate(RusageDescriptor.TIMESPEC_LENGTH, Long.BYTES);
    private final MemorySegment usage =
            Arena.ofAuto().allocate(RusageDescriptor.RUSAGE_LENGTH, Long.BYTES);

    private static MethodHandle link(String function) {
        final Linker linker = Linker.nativeLinker();
        final Optional<MemorySegment> symbol =
                LINUX_64 ? linker.defaultLookup().find(function) : Optional.empty();
        // critical: both return at once and call nothing back
        return symbol.map(
                        address ->
                                linker.downcallHandle(
                                        address,
                                        FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS),
                                        Linker.Option.critical(false)))
                .orElse(null);
    }

    static boolean isAvailable() {
        return CLOCK_GETTIME != null && GETRUSAGE != null;
    }

    @Override
    public long cpuNs() {
        check(call(CLOCK_GETTIME, CLOCK_THREAD_CPUTIME_ID, time), "clock_gettime");
        return TimeUnit.SECONDS.toNanos(time.get(JAVA_LONG, RusageDescriptor.SECONDS_OFFSET))
                + time.get(JAVA_LONG, RusageDescriptor.NANOS_OFFSET);
    }

    @Override
    public long involuntarySwitches() {
        check(call(GETRUSAGE, RUSAGE_THREAD, usage), "getrusage");
        return usage.get(JAVA_LONG, RusageDescriptor.INVOLUNTARY_SWITCHES_OFFSET);
    }

    @Override
    public boolean seesPreemption() {
        return true;
    }

    private static int call(MethodHandle function, int what, MemorySegment into) {
        try {
            return (int) function.invokeExact(what, into);
        } catch (Throwable t) {
            throw new AssertionError("a call of libc must not throw", t);
        }
    }

    private static void check(int result, String function) {
        if (result != 0) {
            throw new IllegalStateException(function + " of this thread gave " + result);
        }
    }
}
