package io.kvasir.nixl.engine;

import io.kvasir.nixl.log.FaultLog;

import org.agrona.ErrorHandler;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentTerminationException;

/**
 * A transfer engine that ends when it is closed and by nothing that it throws: an {@link
 * org.agrona.concurrent.AgentRunner} would leave at an {@link Error} without closing it, and at
 * whatever its error handler throws.
 */
final class LastingAgent implements Agent {
    private final TransferEngine engine;
    private final ErrorHandler errors;
    private final FaultLog log = new FaultLog("the error handler of a transfer engine");

    LastingAgent(TransferEngine engine, ErrorHandler errors) {
        this.engine = engine;
        this.errors = errors;
    }

    @Override
    public String roleName() {
        return engine.roleName();
    }

    @Override
    public int doWork() {
        int work = 0; // idles: what fails in each round does not take a core
        try {
            work = engine.doWork();
        } catch (Throwable e) {
            report(e);
        }
        if (engine.isEnded()) {
            throw new AgentTerminationException(true);
        }
        return work;
    }

    @Override
    public void onClose() {
        try {
            engine.onClose();
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
