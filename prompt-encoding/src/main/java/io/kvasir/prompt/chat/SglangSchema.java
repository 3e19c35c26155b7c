package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Schemas of a tool's parameters as SGLang 0.5.23 hands them to a template: types of databases and
 * programming languages are written as the types of JSON Schema that are nearest.
 */
final class SglangSchema {
    private static final Set<String> TYPES =
            Set.of("null", "boolean", "object", "array", "number", "string", "integer");

    private static final Map<String, Set<String>> ALIASES =
            Map.of(
                    "string",
                    Set.of(
                            "str",
                            "text",
                            "varchar",
                            "char",
                            "enum",
                            "uuid",
                            "date",
                            "datetime",
                            "time",
                            "timestamp",
                            "binary",
                            "blob",
                            "bytea",
                            "bytes",
                            "varbinary"),
                    "boolean",
                    Set.of("bool"),
                    "integer",
                    Set.of("bigint", "smallint", "tinyint"),
                    "number",
                    Set.of("double", "decimal", "real", "numeric"),
                    "array",
                    Set.of("arr", "tuple", "set"),
                    "object",
                    Set.of("map"));

    /** Beginnings of names that go on with a digit, a bracket or a blank, or end there. */
    private static final Map<String, List<String>> BEGINNINGS =
            Map.of(
                    "integer",
                    List.of("int", "uint", "long", "short", "unsigned"),
                    "number",
                    List.of("num", "float"),
                    "array",
                    List.of("list"),
                    "object",
                    List.of("dict"));

    private static final String AFTER_BEGINNING = "0123456789[<( \t";

    private static final List<String> NAMED_SCHEMAS =
            List.of("properties", "patternProperties", "$defs", "definitions", "dependentSchemas");

    private static final List<String> LISTED_SCHEMAS =
            List.of("anyOf", "oneOf", "allOf", "prefixItems");

    private static final List<String> SCHEMAS =
            List.of(
                    "items",
                    "additionalProperties",
                    "not",
                    "if",
                    "then",
                    "else",
                    "contains",
                    "propertyNames",
                    "unevaluatedItems",
                    "unevaluatedProperties");

    private SglangSchema() {}

    /** A schema as plain values, with types of JSON Schema where SGLang knows the given ones. */
    static Object normalized(JsonNode schema) {
        final Object values = JsonValues.of(schema);
        normalize(values);
        return values;
    }

    private static void normalize(Object given) {
        if (given instanceof List<?> list) {
            list.forEach(SglangSchema::normalize);
        } else if (given instanceof Map<?, ?>) {
            @SuppressWarnings("unchecked") // made of JSON
            final Map<String, Object> schema = (Map<String, Object>) given;
            schema.computeIfPresent("type", (_, type) -> typeOrTypes(type));
            for (String name : NAMED_SCHEMAS) {
                if (schema.get(name) instanceof Map<?, ?> named) {
                    named.values().forEach(SglangSchema::normalize);
                }
            }
            for (String name : LISTED_SCHEMAS) {
                if (schema.get(name) instanceof List<?> listed) {
                    normalize(listed);
                }
            }
            SCHEMAS.forEach(name -> normalize(schema.get(name)));
        }
    }

    private static Object typeOrTypes(Object given) {
        if (!(given instanceof List<?> list)) {
            return type(given);
        }
        final Set<Object> once = new LinkedHashSet<>();
        list.forEach(item -> once.add(type(item)));
        return new ArrayList<>(once);
    }

    private static Object type(Object given) {
        if (!(given instanceof String name) || TYPES.contains(name)) {
            return given;
        }
        final int bracket = name.indexOf('(');
        final String base =
                name.substring(0, bracket < 0 ? name.length() : bracket)
                        .strip()
                        .toLowerCase(Locale.ROOT);
        if (TYPES.contains(base)) {
            return base;
        }
        for (Map.Entry<String, Set<String>> type : ALIASES.entrySet()) {
            if (type.getValue().contains(base)) {
                return type.getKey();
            }
        }
        for (Map.Entry<String, List<String>> type : BEGINNINGS.entrySet()) {
            if (type.getValue().stream().anyMatch(beginning -> begins(base, beginning))) {
                return type.getKey();
            }
        }
        return given;
    }

    private static boolean begins(String base, String beginning) {
        return base.startsWith(beginning)
                && (base.length() == beginning.length()
                        || AFTER_BEGINNING.indexOf(base.charAt(beginning.length())) >= 0);
    }
}
