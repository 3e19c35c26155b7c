/**
 * A whole fleet in one process: simulated engines, a gateway, and users who chat with it or ask
 * about long texts.
 *
 * <p>A {@link io.kvasir.cli.demo.Cluster} belongs to one thread and may be closed by another; each
 * conversation has a virtual thread of its own.
 */
package io.kvasir.cli.demo;
