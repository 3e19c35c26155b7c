package io.kvasir.gateway.config;

/** How lines of a log are written. */
public enum LogFormat {
    /** For people. */
    TEXT,
    /** One JSON object a line. */
    JSON
}
