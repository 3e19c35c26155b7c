package io.kvasir.cli.commands;

import io.kvasir.router.policy.RoutingMode;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Option values that are more than a number or a word; a wrong one is a wrong command line. */
final class Converters {
    private Converters() {}

    /** A routing mode in its usual spelling. */
    static final class Mode implements ITypeConverter<RoutingMode> {
        @Override
        public RoutingMode convert(String value) {
            try {
                return RoutingMode.parse(value);
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(e.getMessage());
            }
        }
    }
}
