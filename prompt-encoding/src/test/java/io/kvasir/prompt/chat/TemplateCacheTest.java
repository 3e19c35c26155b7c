package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.prompt.jinja.TemplateLimits;

import org.junit.jupiter.api.Test;

class TemplateCacheTest {
    private static CompiledTemplate template(String source) {
        return CompiledTemplate.of(source, TemplateLimits.DEFAULT);
    }

    @Test
    void isBoundedByMemory() {
        final TemplateCache cache = new TemplateCache(4_000_000);
        for (int i = 0; i < 15; i++) {
            cache.put(template("{% if false %}" + "x".repeat(250_000) + "{% endif %}" + i));
            assertTrue(cache.bytes() <= 4_000_000, "bytes: " + cache.bytes());
        }
        assertTrue(cache.size() > 1 && cache.size() < 15, "templates: " + cache.size());
        cache.put(template("x".repeat(10_000_000)));
        assertTrue(cache.size() > 1, "one that is too large for it changes nothing");
    }

    @Test
    void isBoundedByNumberAndForgetsTheOldest() {
        final TemplateCache cache = new TemplateCache(1L << 30);
        cache.put(template("first"));
        for (int i = 0; i < 1000; i++) {
            cache.put(template("t" + i));
            assertNotNull(cache.get("first"));
        }
        assertEquals(64, cache.size());
        assertNull(cache.get("t0"));
        assertNotNull(cache.get("t999"));
    }

    @Test
    void aTemplateThatIsKeptTwiceCountsOnce() {
        final TemplateCache cache = new TemplateCache(1L << 30);
        cache.put(template("a"));
        final long once = cache.bytes();
        cache.put(template("a"));
        assertEquals(once, cache.bytes());
        cache.put(template("{{ broken"));
        assertTrue(cache.bytes() > once && cache.bytes() < once + 1000, "bytes: " + cache.bytes());
    }
}
