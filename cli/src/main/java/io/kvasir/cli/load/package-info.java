/**
 * Load on an OpenAI server and what came of it: a client that reads streamed answers, request
 * traces and the driver that plays them open loop, statistics of a run and their print.
 *
 * <p>An {@link io.kvasir.cli.load.Outcome} is one request as its client saw it. {@link
 * io.kvasir.cli.load.RunStats} takes outcomes from many threads; the client's callbacks run on
 * threads of its own.
 */
package io.kvasir.cli.load;
