package io.kvasir.cli.demo;

import io.kvasir.registry.HostPort;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;

import java.util.Locale;

/** The value of {@code --worker} by which a gateway knows a simulated engine. */
public final class WorkerFlag {
    private WorkerFlag() {}

    /** Address, sockets, ranks and role of a running engine. */
    public static String of(SimEngine engine) {
        final SimConfig config = engine.config();
        final StringBuilder flag = new StringBuilder(engine.url().toString());
        if (config.eventsPort() >= 0) {
            flag.append(",events=").append(engine.eventsEndpoint(0));
            if (config.replayPort() >= 0) {
                flag.append(",replay=").append(engine.replayEndpoint(0));
            }
        }
        if (config.dataParallelSize() > 1) {
            flag.append(",dp=").append(config.dataParallelSize());
        }
        final SimRole role = config.handoff().role();
        final SimHandoff protocol = config.handoff().protocol();
        if (role != SimRole.BOTH) {
            flag.append(",role=").append(name(role)).append(",handoff=").append(name(protocol));
        }
        if (role == SimRole.PREFILL && protocol == SimHandoff.SGLANG) {
            flag.append(",bootstrap=");
            flag.append(HostPort.of(config.reachableHost(), engine.sidePort()));
        }
        return flag.toString();
    }

    private static String name(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }
}
