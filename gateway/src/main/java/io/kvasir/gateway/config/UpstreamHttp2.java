package io.kvasir.gateway.config;

/** With which workers HTTP/2 is spoken. */
public enum UpstreamHttp2 {
    /** With https:// workers that offer it. */
    AUTO,
    /** With none. */
    OFF,
    /**
     * With https:// workers that offer it, and with all http:// workers: nothing is offered there.
     */
    PRIOR_KNOWLEDGE
}
