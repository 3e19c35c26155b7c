package io.kvasir.router.queue;

import java.util.Map;

/**
 * What a queue has and has done, as of one moment.
 *
 * @param requests that wait, those included that follow another one's prompt
 * @param tokens of their prompts
 * @param following requests that wait for another one's prompt
 * @param oldestNs how long the one has waited that came first; 0 where none waits
 * @param admitted requests that were booked, at once or after a wait
 * @param waited those of them that have waited
 * @param cancelled requests that were given up
 * @param refused requests that were refused by the queue, by cause
 * @param led prompts that others could follow
 * @param followed requests that followed one, waiting or drawn to its worker
 * @param notLed prompts that others could not follow, because there were too many
 */
public record QueueStatus(
        int requests,
        long tokens,
        int following,
        long oldestNs,
        long admitted,
        long waited,
        long cancelled,
        Map<QueueException.Kind, Long> refused,
        long led,
        long followed,
        long notLed) {
    /** Copies the map. */
    public QueueStatus {
        refused = Map.copyOf(refused);
    }
}
