package io.kvasir.prompt.chat;

import io.kvasir.prompt.jinja.ChatTemplate;
import io.kvasir.prompt.jinja.TemplateException;
import io.kvasir.prompt.jinja.TemplateLimits;

/**
 * A template, or why it could not be compiled.
 *
 * @param source its text
 * @param template null if there is a problem
 * @param problem null if there is none
 */
record CompiledTemplate(String source, ChatTemplate template, TemplateException problem) {
    private static final int BYTES_PER_CHAR = 2;

    static CompiledTemplate of(String source, TemplateLimits limits) {
        try {
            return new CompiledTemplate(source, ChatTemplate.compile(source, limits), null);
        } catch (TemplateException e) {
            return new CompiledTemplate(source, null, e);
        }
    }

    /** About how much memory it takes. */
    long sizeBytes() {
        return template == null ? (long) BYTES_PER_CHAR * source.length() : template.sizeBytes();
    }
}
