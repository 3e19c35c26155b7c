/**
 * Prefill and decode on different workers: the state machine of a request that is split between two
 * workers, as one table ({@link io.kvasir.router.disagg.SplitTable}), and what drives it ({@link
 * io.kvasir.router.disagg.SplitFlow}).
 *
 * <p>Knows no HTTP, no engine and no NIXL: what sends a request to a worker, aborts it and frees
 * blocks is behind {@link io.kvasir.router.disagg.SplitLegs}. Time comes from {@link
 * io.kvasir.router.disagg.Deadlines}. So the gateway and a simulation in virtual time run the same
 * steps.
 *
 * <p>Flows are thread-safe; each runs its steps one at a time, on whichever thread reports an
 * event.
 */
package io.kvasir.router.disagg;
