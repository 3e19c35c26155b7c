package io.kvasir.nixl.engine;

import io.kvasir.nixl.log.FaultLog;

import org.agrona.ErrorHandler;
import org.agrona.concurrent.Agent;

/**
 * An agent that nothing it throws ends: an {@link org.agrona.concurrent.AgentRunner} would leave at
 * an {@link Error} without closing it, and at whatever its error handler throws.
 */
final class LastingAgent implements Agent {
    private final Agent agent;
    private final ErrorHandler errors;
    private final FaultLog log = new FaultLog("the error handler of a transfer engine");

    LastingAgent(Agent agent, ErrorHandler errors) {
        this.agent = agent;
        this.errors = errors;
    }

    @Override
    public String roleName() {
        return agent.roleName();
    }

    @Override
    public int doWork() {
        try {
            return agent.doWork();
        } catch (Throwable e) {
            report(e);
            return 0; // idles: what fails in each round does not take a core
        }
    }

    @Override
    public void onClose() {
        try {
            agent.onClose();
        } catch (Throwable e) {
            report(e);
        }
    }

    private void report(Throwable fault) {
        try {
            errors.onError(fault);
        } catch (Throwable e) {
            log.add(e, System.nanoTime());
        }
    }
}
