/**
 * OpenAI's interface as data: requests and their parser, events of a stream and what answers state
 * of usage, errors in OpenAI's shape, JSON.
 *
 * <p>The ground of the gateway: knows none of its other packages, no configuration, no HTTP server
 * and no client. Public for the gateway's own packages, not for embedders. No type has threads; a
 * request's objects are used by one thread at a time.
 */
package io.kvasir.gateway.openai;
