/**
 * A report on op streams: every registered index replayed in fresh JVMs, one table with ratios, an
 * HTML page with latency curves. {@link io.kvasir.bench.report.Report} is the program.
 */
package io.kvasir.bench.report;
