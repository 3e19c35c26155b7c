package io.kvasir.pipeline.source;

/**
 * What an {@link EventPlane} has counted since its start.
 *
 * @param messages messages that arrived
 * @param events events in them that were passed to a stream
 * @param unknownEvents events of workers for which no stream is registered
 * @param unreadable messages or events that do not say whose they are
 * @param gaps times that a publisher's messages were not consecutive
 * @param missedMessages messages that are missing in these gaps
 * @param publisherChanges times that another publisher took a worker over
 * @param streams streams that are registered now
 * @param unconnected why there is no connection; empty while there is one
 */
public record EventPlaneStatus(
        long messages,
        long events,
        long unknownEvents,
        long unreadable,
        long gaps,
        long missedMessages,
        long publisherChanges,
        int streams,
        String unconnected) {}
