package io.kvasir.gateway.openai;

import org.eclipse.jetty.http.HttpFields;

import java.util.List;
import java.util.regex.Pattern;

/**
 * The elements of headers that are lists. The library's own reader throws for a blank before an
 * equals sign and leaves out elements without a name; what is wrong is for the caller to say.
 * Stateless.
 */
public final class HeaderElements {
    private static final Pattern COMMA = Pattern.compile(",");

    private HeaderElements() {}

    /**
     * What stands between the commas of a header's values, without blanks around it.
     *
     * @return none of them empty, which say nothing
     */
    public static List<String> of(HttpFields headers, String name) {
        return headers.getValuesList(name).stream()
                .flatMap(COMMA::splitAsStream)
                .map(String::strip)
                .filter(element -> !element.isEmpty())
                .toList();
    }
}
