package io.kvasir.gateway.metrics;

/**
 * What a gateway is busy with at one moment.
 *
 * @param preparing requests that were let in and are not booked yet
 * @param waitingPrompts requests that wait for one of the threads that read prompts
 * @param unread requests that their worker is done with, and whose answer waits for its client
 * @param bodyBytes bytes of request bodies in memory
 * @param answerBytes bytes of answers in memory that are no streams
 * @param exchanges requests that wait for a worker's answer or get it
 * @param streams those of them that are answered as streams
 * @param connections connections of clients
 * @param droppedLogLines lines of the access log that were not written
 */
public record GatewayActivity(
        int preparing,
        int waitingPrompts,
        int unread,
        long bodyBytes,
        long answerBytes,
        int exchanges,
        int streams,
        int connections,
        long droppedLogLines) {}
