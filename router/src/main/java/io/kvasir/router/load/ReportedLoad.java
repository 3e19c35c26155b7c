package io.kvasir.router.load;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.OthersLoad;

/**
 * What counts of a worker's reports: of each number the latest that some source has stated.
 *
 * @param load as reported
 * @param others what of it is not booked here, at the time of the report
 * @param source of the latest report
 * @param atNs when that came, by the router's clock
 */
public record ReportedLoad(EngineLoad load, OthersLoad others, LoadSource source, long atNs) {}
