package io.kvasir.gateway.config;

/** What is not below this is logged. */
public enum LogLevel {
    /** Nothing. */
    OFF,
    /** Defects, and settings that cannot work. */
    ERROR,
    /** Outages and their ends, requests that failed at their worker. */
    WARN,
    /** Start and end, workers that come and go. */
    INFO,
    /** Each failed attempt, each prompt that could not be tokenized. */
    DEBUG,
    /** All. */
    TRACE
}
