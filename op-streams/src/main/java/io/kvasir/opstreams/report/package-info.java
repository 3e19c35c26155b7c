/**
 * A report on op streams: every registered index replayed in fresh JVMs, one table with ratios, an
 * HTML page with latency curves. {@link io.kvasir.opstreams.report.Report} is the program.
 */
package io.kvasir.opstreams.report;
