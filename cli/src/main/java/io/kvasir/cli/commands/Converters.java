package io.kvasir.cli.commands;

import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.Setting;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

import java.net.URI;
import java.net.URISyntaxException;

/** Option values that are more than a number or a word; a wrong one is a wrong command line. */
final class Converters {
    private Converters() {}

    /** A URL; what is wrong with its parts the command says. */
    static final class Url implements ITypeConverter<URI> {
        @Override
        public URI convert(String value) {
            try {
                return new URI(value);
            } catch (URISyntaxException e) {
                throw new TypeConversionException(
                        "'"
                                + Setting.withoutPasswords(value)
                                + "' is no URL, such as http://host:port");
            }
        }
    }

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
