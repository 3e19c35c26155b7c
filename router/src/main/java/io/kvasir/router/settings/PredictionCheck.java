package io.kvasir.router.settings;

/** What is concluded from cache hits that engines state beside those that were predicted. */
public enum PredictionCheck {
    /** Forecasts that are persistently too high or too low cost a worker a part of its credit. */
    BOTH,
    /**
     * Those that are too high do. Those that are too low do not: for engines that count tokens as
     * cached which they have from other tiers or other machines.
     */
    OVER,
    /** Nothing is. */
    OFF
}
