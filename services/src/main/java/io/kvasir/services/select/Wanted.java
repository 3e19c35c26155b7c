package io.kvasir.services.select;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.ServiceException;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a prompt asks of the taints of its worker ({@code routing_constraints}); a topology label is
 * one, as {@code dynamo.topology/DOMAIN=VALUE}.
 *
 * @param required all of which a worker has to have
 * @param preferred with weights, which make a worker cheaper
 */
record Wanted(List<String> required, Map<String, Double> preferred) {
    /** Nothing is asked. */
    static final Wanted NOTHING = new Wanted(List.of(), Map.of());

    /** Taints of one kind at most. */
    static final int MOST = 64;

    private static final String NAME = "routing_constraints";
    private static final String TOPOLOGY = "dynamo.topology/";

    /** The taint of a topology label: of a domain, and its value. */
    static String topologyTaint(String domain, String value) {
        return TOPOLOGY + domain + '=' + value;
    }

    /**
     * Reads what a prompt asks.
     *
     * @throws ServiceException 422 if it cannot be read
     */
    static Wanted of(JsonBody body) throws ServiceException {
        final JsonNode asked = body.objectOrNull(NAME);
        return asked == null
                ? NOTHING
                : new Wanted(
                        required(asked.path("required_taints")),
                        preferred(asked.path("preferred_taints")));
    }

    private static List<String> required(JsonNode list) throws ServiceException {
        final List<String> taints = new ArrayList<>();
        for (JsonNode each : list) {
            taints.add(each.isTextual() ? each.textValue() : "");
        }
        if (!(isNothing(list) || list.isArray()) || taints.contains("") || taints.size() > MOST) {
            throw ServiceException.unusable(
                    NAME + ".required_taints: a list of at most " + MOST + " texts is needed");
        }
        return taints;
    }

    private static Map<String, Double> preferred(JsonNode weights) throws ServiceException {
        final Map<String, Double> taints = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> each : weights.properties()) {
            taints.put(
                    each.getKey(),
                    each.getValue().isNumber() ? each.getValue().doubleValue() : Double.NaN);
        }
        if (!(isNothing(weights) || weights.isObject())
                || !taints.values().stream().allMatch(Double::isFinite)
                || taints.size() > MOST) {
            throw ServiceException.unusable(
                    NAME
                            + ".preferred_taints: an object of at most "
                            + MOST
                            + " finite numbers is needed");
        }
        return taints;
    }

    private static boolean isNothing(JsonNode node) {
        return node.isMissingNode() || node.isNull();
    }

    /** Whether a worker with some taints may be chosen. */
    boolean allows(Set<String> taints) {
        return taints.containsAll(required);
    }

    /** What the cost of a worker with some taints is multiplied by. */
    double factor(Set<String> taints) {
        double sum = 0;
        for (Map.Entry<String, Double> each : preferred.entrySet()) {
            sum += taints.contains(each.getKey()) ? each.getValue() : 0;
        }
        return Math.exp(-Math.tanh(sum));
    }
}
