package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.HeaderElements;
import io.kvasir.router.RouteRequest;

import org.eclipse.jetty.http.HttpFields;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * What a request asks of the labels and taints of its workers, of each of its legs. From the
 * headers {@code x-kvasir-require}, {@code x-kvasir-prefer} and {@code x-kvasir-tolerate}, and from
 * {@code nvext.routing_constraints} of its body.
 *
 * @param required labels, all of which a worker has to have: {@code zone=a}, or the name of a taint
 * @param preferred labels with weights, which make a worker cheaper
 * @param tolerated names of taints that keep it from no worker
 */
record RoutingConstraints(
        List<String> required, Map<String, Double> preferred, List<String> tolerated) {
    /** Nothing is asked. */
    static final RoutingConstraints NONE = new RoutingConstraints(List.of(), Map.of(), List.of());

    private static final String REQUIRE = RoutingHeaders.PREFIX + "require";
    private static final String PREFER = RoutingHeaders.PREFIX + "prefer";
    private static final String TOLERATE = RoutingHeaders.PREFIX + "tolerate";
    private static final String HEADERS = REQUIRE + ", " + PREFER + ", " + TOLERATE;
    private static final String MEMBER = "nvext.routing_constraints";

    /** How labels of topology are written elsewhere. */
    private static final String TOPOLOGY = "dynamo.topology/";

    private static final String WEIGHT = "w=";
    private static final int MOST = 64;
    private static final Pattern LABEL =
            Pattern.compile("[A-Za-z0-9._/-]{1,63}(=[A-Za-z0-9._/-]{1,63})?");

    RoutingConstraints {
        required = List.copyOf(required);
        preferred = Map.copyOf(preferred);
        tolerated = List.copyOf(tolerated);
    }

    /**
     * Reads the headers of a trusted caller.
     *
     * @throws ApiException 400 if one cannot be read
     */
    static RoutingConstraints parse(HttpFields headers) throws ApiException {
        if (!headers.contains(REQUIRE)
                && !headers.contains(PREFER)
                && !headers.contains(TOLERATE)) {
            return NONE;
        }
        final Map<String, Double> preferred = new LinkedHashMap<>();
        for (String text : HeaderElements.of(headers, PREFER)) {
            final int end = text.indexOf(';');
            preferred.put(
                    label(PREFER, end < 0 ? text : text.substring(0, end).strip()),
                    end < 0 ? 1 : weightOf(text.substring(end + 1).strip()));
        }
        return checked(
                HEADERS,
                labels(REQUIRE, HeaderElements.of(headers, REQUIRE)),
                preferred,
                labels(TOLERATE, HeaderElements.of(headers, TOLERATE)));
    }

    private static double weightOf(String parameter) throws ApiException {
        if (!parameter.startsWith(WEIGHT)) {
            throw ApiException.invalid(
                    PREFER, PREFER + ": '" + parameter + "' behind a label must be w=WEIGHT");
        }
        return weight(PREFER, parameter.substring(WEIGHT.length()));
    }

    /**
     * The same with what the body of a trusted caller's request asks beside it.
     *
     * @param hints {@code routing_constraints} of {@code nvext}; null for none
     * @throws ApiException 400 if they cannot be read
     */
    RoutingConstraints and(JsonNode hints) throws ApiException {
        if (hints == null || hints.isNull()) {
            return this;
        }
        if (!hints.isObject()) {
            throw ApiException.invalid(MEMBER, "'" + MEMBER + "' must be an object");
        }
        final List<String> allRequired = new ArrayList<>(required);
        allRequired.addAll(texts(hints, "required_taints"));
        final List<String> allTolerated = new ArrayList<>(tolerated);
        allTolerated.addAll(texts(hints, "tolerated_taints"));
        final Map<String, Double> allPreferred = new LinkedHashMap<>(preferred);
        final JsonNode weights = hints.path("preferred_taints");
        if (!weights.isMissingNode() && !weights.isNull() && !weights.isObject()) {
            throw ApiException.invalid(
                    MEMBER, "'" + MEMBER + ".preferred_taints' must be an object of numbers");
        }
        for (Map.Entry<String, JsonNode> each : weights.properties()) {
            final String name = MEMBER + ".preferred_taints";
            allPreferred.put(
                    label(name, each.getKey()),
                    weight(name, each.getValue().isNumber() ? each.getValue().asText() : "none"));
        }
        return checked(MEMBER, allRequired, allPreferred, allTolerated);
    }

    private static List<String> texts(JsonNode hints, String member) throws ApiException {
        final JsonNode list = hints.path(member);
        final String name = MEMBER + "." + member;
        if (list.isMissingNode() || list.isNull()) {
            return List.of();
        }
        final List<String> texts = new ArrayList<>();
        for (JsonNode each : list) {
            texts.add(each.textValue());
        }
        if (!list.isArray() || texts.contains(null)) {
            throw ApiException.invalid(name, "'" + name + "' must be a list of strings");
        }
        return labels(name, texts);
    }

    private static List<String> labels(String from, List<String> texts) throws ApiException {
        final List<String> labels = new ArrayList<>();
        for (String text : texts) {
            labels.add(label(from, text));
        }
        return labels;
    }

    private static String label(String from, String text) throws ApiException {
        final String label = text.startsWith(TOPOLOGY) ? text.substring(TOPOLOGY.length()) : text;
        if (!LABEL.matcher(label).matches()) {
            throw ApiException.invalid(
                    from,
                    from
                            + ": '"
                            + text
                            + "' is no label; one is KEY=VALUE or the name of a taint, each 1 to"
                            + " 63 of the characters A-Z a-z 0-9 . _ / -");
        }
        return label;
    }

    private static double weight(String from, String text) throws ApiException {
        try {
            final double weight = Double.parseDouble(text);
            if (Double.isFinite(weight)) {
                return weight;
            }
        } catch (NumberFormatException e) {
            throw noWeight(from, text);
        }
        throw noWeight(from, text);
    }

    private static ApiException noWeight(String from, String text) {
        return ApiException.invalid(from, from + ": weight '" + text + "' must be a finite number");
    }

    private static RoutingConstraints checked(
            String from,
            List<String> required,
            Map<String, Double> preferred,
            List<String> tolerated)
            throws ApiException {
        final int most = Math.max(Math.max(required.size(), preferred.size()), tolerated.size());
        if (most > MOST) {
            throw ApiException.invalid(from, from + ": " + most + " labels are more than " + MOST);
        }
        return new RoutingConstraints(required, preferred, tolerated);
    }

    void fill(RouteRequest request) {
        required.forEach(request::require);
        preferred.forEach(request::prefer);
        tolerated.forEach(request::tolerate);
    }
}
