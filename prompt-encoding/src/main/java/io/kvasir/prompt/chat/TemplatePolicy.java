package io.kvasir.prompt.chat;

import io.kvasir.prompt.jinja.TemplateLimits;

/**
 * What chat templates may do.
 *
 * @param trustRequests whether a request may bring its own template or choose one by name; if not,
 *     the tokens of such a request are not known
 * @param limits what a template may cost, those of the model and those of requests
 * @param cacheBytes memory for compiled templates of requests
 */
public record TemplatePolicy(boolean trustRequests, TemplateLimits limits, long cacheBytes) {
    /** As engines are started when nothing is said. */
    public static final TemplatePolicy DEFAULT =
            new TemplatePolicy(false, TemplateLimits.DEFAULT, 8 << 20);
}
