/** Gateways, engines and NATS servers as processes, and the trouble that they are put to. */
package io.kvasir.cli.cluster;
