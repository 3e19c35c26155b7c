package io.kvasir.gateway.config;

import org.eclipse.jetty.util.InetAddressSet;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A range of client addresses, as {@code trusted-network} names it. */
public final class AddressRange {
    private static final Pattern MAPPED =
            Pattern.compile(
                    "\\[?::ffff:([0-9]+(?:\\.[0-9]+){3})]?(?:/([0-9]{1,3}))?",
                    Pattern.CASE_INSENSITIVE);

    /** With all four numbers: fewer would be read as another address, 10.0.1 as 10.0.0.1. */
    private static final Pattern IPV4 =
            Pattern.compile(
                    "[0-9]+(\\.[0-9]+){3}(/[0-9]+|-[0-9]+(\\.[0-9]+){3})?"
                            + "|[0-9-]+(\\.[0-9-]+){3}");

    private static final int MAPPED_BITS = 96;

    private AddressRange() {}

    /**
     * Checks a range of addresses.
     *
     * @param text an address, a range {@code a-b} or CIDR
     * @return the same
     * @throws IllegalArgumentException if it is none
     */
    static String check(String text) {
        if (!text.matches("[0-9A-Fa-f:.\\[\\]/-]+") // a name would be looked up
                || (text.indexOf(':') < 0 && !IPV4.matcher(text).matches())) {
            throw none(null);
        }
        final String plain = plain(text);
        try {
            var _ = new InetAddressSet().add(plain);
        } catch (IllegalArgumentException e) {
            throw none(e);
        }
        return text;
    }

    private static IllegalArgumentException none(IllegalArgumentException causeOrNull) {
        return new IllegalArgumentException("is no address range, as 10.0.0.0/8 is", causeOrNull);
    }

    /**
     * An IPv4 address that is written as one of IPv6, as {@code ::ffff:10.0.0.1}, or a range of
     * such: connections that come from it show it as one of IPv4.
     */
    public static String plain(String text) {
        final Matcher mapped = MAPPED.matcher(text);
        if (!mapped.matches()) {
            return text;
        }
        final String given = mapped.group(2);
        if (given == null) {
            return mapped.group(1);
        }
        final int bits = Integer.parseInt(given) - MAPPED_BITS;
        if (bits < 0) {
            throw new IllegalArgumentException(
                    "is more than the IPv4 addresses; write ::/0 for all");
        }
        return mapped.group(1) + "/" + bits;
    }
}
