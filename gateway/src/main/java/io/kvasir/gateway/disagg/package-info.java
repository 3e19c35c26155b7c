/**
 * What a gateway does for the hand-off between prefill and decode workers beside passing requests
 * on: it ends what a prefill engine holds for a decode that never comes.
 *
 * <p>Knows {@code config}, the router's {@code disagg}, engine-protocol, nixl-transfer.
 *
 * <p>NIXL's classes are loaded with the first finished prefill: a gateway without prefill workers
 * has none of them.
 */
package io.kvasir.gateway.disagg;
