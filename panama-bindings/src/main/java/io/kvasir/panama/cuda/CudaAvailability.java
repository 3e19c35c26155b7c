package io.kvasir.panama.cuda;

import java.util.List;
import java.util.stream.Collectors;

/** Whether CUDA can be used in this process: the answer of {@link CudaProbe}. */
public sealed interface CudaAvailability {
    /**
     * Says it in one line, for a log.
     *
     * @return what was found, or why nothing was
     */
    String describe();

    /**
     * The driver is loaded and shows at least one device.
     *
     * @param path the library's path or bare name
     * @param driverVersion the newest CUDA it supports, 1000 * major + 10 * minor
     * @param devices in the driver's order
     */
    record Available(String path, int driverVersion, List<CudaDevice> devices)
            implements CudaAvailability {
        /** Copies the list. */
        public Available {
            devices = List.copyOf(devices);
        }

        @Override
        public String describe() {
            return "CUDA %d.%d: %s, %d device%s: %s"
                    .formatted(
                            driverVersion / 1000,
                            driverVersion % 1000 / 10,
                            path,
                            devices.size(),
                            devices.size() == 1 ? "" : "s",
                            devices.stream()
                                    .map(CudaDevice::describe)
                                    .collect(Collectors.joining(", ")));
        }
    }

    /**
     * CUDA cannot be used.
     *
     * @param cause the step that failed
     * @param reason what is wrong, in the loader's or the driver's own words where they have any
     * @param remedy what to change
     */
    record Absent(Cause cause, String reason, String remedy) implements CudaAvailability {
        @Override
        public String describe() {
            return "CUDA is not available: " + reason + "; " + remedy;
        }
    }

    /** The step at which the probe ended without CUDA. */
    enum Cause {
        /** This Java may not call native code, or this is not Linux. */
        PLATFORM,
        /** The library cannot be loaded. */
        LIBRARY,
        /** The library lacks a function. */
        SYMBOL,
        /** The driver answered with an error. */
        DRIVER,
        /** The driver works and counts no device. */
        NO_DEVICE
    }
}
