package io.kvasir.opstreams.report;

import java.util.List;

/** A page in HTML that is well-formed XML too; nothing in it comes from elsewhere. */
final class Html {
    private static final String STYLE =
            """
            :root { color-scheme: light dark; }
            body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
                   padding: 0 1rem; }
            h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
            .wide { overflow-x: auto; width: max-content; max-width: calc(100vw - 2rem); }
            table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
            th, td { padding: .2rem .4rem; text-align: right; white-space: nowrap;
                     border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
            th:nth-child(-n+3), td:nth-child(-n+3) { text-align: left; }
            svg { display: block; max-width: 100%; height: auto; margin: 1rem 0; }
            svg text { fill: currentColor; font-size: 12px; } svg .title { font-weight: 600; }
            svg .grid { stroke: currentColor; opacity: .15; }
            """;

    private final StringBuilder body = new StringBuilder();
    private final String title;

    Html(String title) {
        this.title = title;
        element("h1", title);
    }

    /** Text as it may stand inside an element or attribute. */
    static String escape(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    Html heading(String text) {
        return element("h2", text);
    }

    Html paragraph(String text) {
        return element("p", text);
    }

    Html list(List<String> items) {
        body.append("<ul>\n");
        items.forEach(item -> element("li", item));
        body.append("</ul>\n");
        return this;
    }

    private Html element(String name, String text) {
        body.append('<').append(name).append('>').append(escape(text));
        body.append("</").append(name).append(">\n");
        return this;
    }

    /** Adds a table whose first row holds the titles. */
    Html table(List<List<String>> rows) {
        body.append("<div class=\"wide\"><table>\n");
        for (int r = 0; r < rows.size(); r++) {
            final String cell = r == 0 ? "th" : "td";
            body.append("<tr>");
            for (String text : rows.get(r)) {
                body.append('<').append(cell).append('>').append(escape(text));
                body.append("</").append(cell).append('>');
            }
            body.append("</tr>\n");
        }
        body.append("</table></div>\n");
        return this;
    }

    /** Adds markup as it is. */
    Html markup(String wellFormed) {
        body.append(wellFormed);
        return this;
    }

    String page() {
        return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>"
                + escape(title)
                + "</title>\n<style>\n"
                + STYLE
                + "</style>\n</head>\n<body>\n"
                + body
                + "</body>\n</html>\n";
    }
}
