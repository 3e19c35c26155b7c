/**
 * Simulated inference engines: the OpenAI API, the caching behaviour of vLLM V1, its events over
 * ZMQ, and a timing model, without a GPU.
 *
 * <p>The simulator judges routers, so it shares nothing with one: it has its own block pool, its
 * own block names and its own encoder. {@link io.kvasir.sim.SimEngine} is the way in, {@link
 * io.kvasir.sim.SteppedEngine} the same without threads and sockets.
 *
 * <p>From the bottom: {@code config}, {@code state} and {@code cache} know no package of this
 * module, {@code events} knows {@code config}, {@code batch} all of these, {@code faults} what
 * {@code batch} offers, {@code http} all, and this package makes an engine of them.
 */
package io.kvasir.sim;
