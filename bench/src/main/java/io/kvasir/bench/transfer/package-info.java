/**
 * What transfers of KV blocks cost: NIXL's calls beside the same calls in C, the throughput of
 * both, and how much of a copy hides behind the computation of layers. The C half is {@code
 * bench/src/main/c/nixl_baseline.c}; {@code bench/README.md} has commands and figures.
 */
package io.kvasir.bench.transfer;
