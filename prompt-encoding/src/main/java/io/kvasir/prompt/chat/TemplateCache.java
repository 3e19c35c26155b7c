package io.kvasir.prompt.chat;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Compiled templates that requests brought along, the latest used ones, bounded by their number and
 * by their memory. Thread-safe.
 */
final class TemplateCache {
    private static final int MAX_TEMPLATES = 64;
    private static final float LOAD_FACTOR = 0.75f;

    private final long maxBytes;
    private final Map<String, CompiledTemplate> templates =
            new LinkedHashMap<>(MAX_TEMPLATES, LOAD_FACTOR, true);
    private long bytes;

    TemplateCache(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /** A template by its text; null if it is not here. */
    synchronized CompiledTemplate get(String source) {
        return templates.get(source);
    }

    /** Keeps a template, in place of those that were not used for longest. */
    synchronized void put(CompiledTemplate template) {
        if (template.sizeBytes() > maxBytes) {
            return;
        }
        final CompiledTemplate old = templates.put(template.source(), template);
        bytes += template.sizeBytes() - (old == null ? 0 : old.sizeBytes());
        final Iterator<CompiledTemplate> oldest = templates.values().iterator();
        while (bytes > maxBytes || templates.size() > MAX_TEMPLATES) {
            bytes -= oldest.next().sizeBytes();
            oldest.remove();
        }
    }

    synchronized int size() {
        return templates.size();
    }

    synchronized long bytes() {
        return bytes;
    }
}
