package io.kvasir.gateway.metrics;

import java.util.function.Supplier;

/** What the gateway itself is busy with. */
final class ActivityMetrics {
    private final Supplier<GatewayActivity> source;
    private volatile GatewayActivity activity;

    /**
     * Adds the metrics to a page.
     *
     * @param source asked once for each page
     */
    ActivityMetrics(MetricRegistry page, Supplier<GatewayActivity> source) {
        this.source = source;
        update();
        page.gauge(
                "kvasir_requests_preparing",
                "Requests that were let in and are not booked yet",
                out -> out.call(activity.preparing()));
        page.gauge(
                "kvasir_prompts_waiting",
                "Requests that wait for one of the prompt-threads",
                out -> out.call(activity.waitingPrompts()));
        page.gauge(
                "kvasir_requests_unread",
                "Requests that their worker is done with, and whose answer waits for its client",
                out -> out.call(activity.unread()));
        page.gauge(
                "kvasir_body_bytes_in_flight",
                "Bytes of request bodies in memory; max-body-bytes-in-flight limits them",
                out -> out.call((double) activity.bodyBytes()));
        page.gauge(
                "kvasir_answer_bytes_in_flight",
                "Bytes of answers in memory that are no streams; max-body-bytes-in-flight limits"
                        + " them",
                out -> out.call((double) activity.answerBytes()));
        page.gauge(
                "kvasir_requests_in_flight",
                "Requests that wait for a worker's answer or get it",
                out -> out.call(activity.exchanges()));
        page.gauge(
                "kvasir_streams_in_flight",
                "Those of them that are answered as streams",
                out -> out.call(activity.streams()));
        page.gauge(
                "kvasir_open_connections",
                "Connections of clients",
                out -> out.call(activity.connections()));
        page.count(
                "kvasir_access_log_dropped_total",
                "Lines of the access log that were not written",
                out -> out.call((double) activity.droppedLogLines()));
    }

    /** Before a page. */
    void update() {
        activity = source.get();
    }
}
