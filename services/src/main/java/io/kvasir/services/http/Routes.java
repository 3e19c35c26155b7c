package io.kvasir.services.http;

import org.eclipse.jetty.util.URIUtil;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The endpoints of a service by path. A path may have one part <code>{}</code> that stands for any
 * text. Paths are compared as they were sent, before percent signs, dots and slashes in that text
 * mean anything: no text leads to another endpoint. Immutable.
 */
final class Routes {
    private static final String ANY = "{}";

    /** What a path leads to. */
    record Route(String path, Map<String, Endpoint> methods, String parameter) {}

    /** A path with a part that is any. */
    private record Template(String before, String after, String path) {}

    private final Map<String, Map<String, Endpoint>> byPath;
    private final List<Template> templates = new ArrayList<>();

    Routes(Map<String, Map<String, Endpoint>> byPath) {
        this.byPath = new TreeMap<>(byPath);
        for (String path : this.byPath.keySet()) {
            final int at = path.indexOf(ANY);
            if (at >= 0) {
                templates.add(new Template(path.substring(0, at), path.substring(at + 2), path));
            }
        }
    }

    /**
     * What a request's path leads to.
     *
     * @param path as it was sent
     * @return null for nothing
     */
    Route find(String path) {
        final Map<String, Endpoint> exact = byPath.get(path);
        if (exact != null && !path.contains(ANY)) {
            return new Route(path, exact, "");
        }
        for (Template template : templates) {
            final int end = path.length() - template.after.length();
            if (end > template.before.length()
                    && path.startsWith(template.before)
                    && path.endsWith(template.after)) {
                final String parameter = path.substring(template.before.length(), end);
                if (parameter.indexOf('/') < 0) {
                    return new Route(template.path, byPath.get(template.path), decoded(parameter));
                }
            }
        }
        return null;
    }

    private static String decoded(String part) {
        return URIUtil.decodePath(part.replace(";", "%3B")); // which drops what follows one
    }
}
