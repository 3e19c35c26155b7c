/**
 * Publishing events of caches: for engines written in Java, and for relays.
 *
 * <p>{@link io.kvasir.pipeline.publish.EngineEventPublisher} publishes over ZMQ as engines do, with
 * a replay socket; {@link io.kvasir.pipeline.publish.KvEventPublisher} publishes router events over
 * a {@link io.kvasir.pipeline.publish.RouterEventTransport}; {@link
 * io.kvasir.pipeline.publish.ZmqKvEventPublisher} reads the former and publishes the latter.
 *
 * <p>Threads: what publishes over ZMQ has a thread of its own that owns the sockets; a relay has
 * one that publishes. All public methods may be called by any thread.
 */
package io.kvasir.pipeline.publish;
