package io.kvasir.gateway.testing;

import io.opentelemetry.proto.trace.v1.Span;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What must hold of all spans of a gateway that has ended. */
public final class Traces {
    private static final int FAILED = 400;
    private static final Set<String> STEPS = Set.of("tokenize", "queue", "handoff");
    private static final Set<String> LEGS = Set.of("generate", "prefill", "decode");

    private Traces() {}

    /**
     * Finds what must not be: each request has one root, and all else lies below one.
     *
     * @param statuses of the requests that have ended, by id
     * @return one line for each thing that is wrong
     */
    public static List<String> wrong(List<Span> spans, Map<String, Integer> statuses) {
        final List<String> wrong = new ArrayList<>();
        final Map<String, Span> roots = new HashMap<>();
        final Map<String, String> ended = new HashMap<>();
        final Map<String, Span> all = new HashMap<>();
        for (Span span : spans) {
            if (all.put(FakeCollector.hex(span.getSpanId()), span) != null) {
                wrong.add("ended twice: " + span);
            }
            if (span.getStartTimeUnixNano() > span.getEndTimeUnixNano()) {
                wrong.add("ends before it begins: " + span);
            }
            if (span.getKind() == Span.SpanKind.SPAN_KIND_SERVER) {
                roots.put(FakeCollector.hex(span.getSpanId()), span);
                final Map<String, String> said = FakeCollector.attributes(span.getAttributesList());
                final String id = said.get("kvasir.request_id");
                if (ended.put(id, said.get("http.response.status_code")) != null) {
                    wrong.add("two roots: " + id);
                }
            }
        }
        for (Span span : spans) {
            final String name = span.getName();
            if (span.getKind() != Span.SpanKind.SPAN_KIND_SERVER) {
                final Span root = roots.get(FakeCollector.hex(span.getParentSpanId()));
                if (root == null || !root.getTraceId().equals(span.getTraceId())) {
                    wrong.add("below no request: " + span);
                }
                if (!STEPS.contains(name) && !LEGS.contains(name)) {
                    wrong.add("unknown: " + name);
                }
            }
            if (LEGS.contains(name)
                    && !FakeCollector.attributes(span.getAttributesList())
                            .containsKey("kvasir.outcome")) {
                wrong.add("without an outcome: " + span);
            }
        }
        ended.forEach(
                (id, status) -> {
                    if (!status.equals(String.valueOf(statuses.get(id)))) {
                        wrong.add(id + " ended with " + statuses.get(id) + ", its root " + status);
                    }
                });
        statuses.forEach(
                (id, status) -> {
                    // one whose head was not whole, or whose stream was reset at once, has none
                    if (status < FAILED && !ended.containsKey(id)) {
                        wrong.add("without a root: " + id);
                    }
                });
        return wrong;
    }
}
