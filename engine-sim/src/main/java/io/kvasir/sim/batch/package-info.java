/**
 * The engine itself: {@link io.kvasir.sim.batch.StepLoop} is the thread that steps, {@link
 * io.kvasir.sim.batch.RankScheduler} the batch of one rank, {@link io.kvasir.sim.batch.SimRequest}
 * a sequence in it. Prefills are held for, and pulled by, other engines over the side port, with
 * the bytes of their blocks where these have any.
 */
package io.kvasir.sim.batch;
