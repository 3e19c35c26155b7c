package io.kvasir.gateway.proxy;

import org.eclipse.jetty.http.HttpDateTime;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;

import java.time.Duration;
import java.time.Instant;

/** When a worker that refused a request says to try again (RFC 9110, 10.2.3). */
final class RetryAfter {
    private static final int MOST_DIGITS = 9; // of seconds: thirty years

    private RetryAfter() {}

    /**
     * Reads seconds or a date.
     *
     * @param now by this clock, with which a date is compared
     * @return zero where it says nothing, nothing that can be read, or a time that is over
     */
    static Duration of(HttpFields headers, Instant now) {
        final String text = headers.get(HttpHeader.RETRY_AFTER);
        if (text == null || text.isEmpty()) {
            return Duration.ZERO;
        }
        if (text.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return Duration.ofSeconds(
                    text.length() <= MOST_DIGITS ? Long.parseLong(text) : Integer.MAX_VALUE);
        }
        final long atMs = HttpDateTime.parseToEpoch(text); // -1 of no date
        return Duration.ofMillis(Math.max(0, atMs - now.toEpochMilli()));
    }
}
