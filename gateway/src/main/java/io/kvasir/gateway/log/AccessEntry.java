package io.kvasir.gateway.log;

/**
 * What the access log says of one request. Nothing of it is the client's text but the id, which was
 * checked: no path beyond the endpoint's own, no query, no header, no body.
 *
 * @param timeMs when its head came, or began where it came too late, since the epoch
 * @param remote address that the connection comes from
 * @param method "-" if HTTP has none of this name, or it could not be read
 * @param firstByteNs from the head of the request to that of the answer
 * @param durationNs from then to the end of the answer
 */
public record AccessEntry(
        long timeMs,
        String remote,
        String method,
        String protocol,
        RequestRecord request,
        int status,
        long bytes,
        long firstByteNs,
        long durationNs) {}
