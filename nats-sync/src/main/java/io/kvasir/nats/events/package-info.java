/**
 * The event plane over NATS: events of workers' caches, in and out.
 *
 * <p>{@link io.kvasir.nats.events.NatsEventSource} feeds an {@link
 * io.kvasir.pipeline.source.EventPlane} from core NATS, {@link
 * io.kvasir.nats.events.JetStreamEventSource} from a stream of JetStream. Subjects and streams are
 * named by {@link io.kvasir.nats.events.EventSubjects} as other routers name them.
 *
 * <p>Threads: a source has one of its own, which connects and runs timers; core NATS delivers on a
 * thread of jnats, JetStream on the source's own.
 */
package io.kvasir.nats.events;
