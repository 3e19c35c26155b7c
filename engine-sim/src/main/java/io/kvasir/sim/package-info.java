/**
 * Simulated inference engines: the OpenAI API, the caching behaviour of vLLM V1, its events over
 * ZMQ, and a timing model, without a GPU.
 *
 * <p>The simulator judges routers, so it shares nothing with one: it has its own block pool, its
 * own block names and its own encoder. {@link io.kvasir.sim.SimEngine} is the way in.
 */
package io.kvasir.sim;
