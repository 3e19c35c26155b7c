/**
 * The OpenAI API of an engine, and what requests and answers say about hand-offs in the words of
 * each engine. Threads of the server; what they ask of the batch goes through its step loop.
 */
package io.kvasir.sim.http;
