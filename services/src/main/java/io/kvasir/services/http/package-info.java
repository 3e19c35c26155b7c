/**
 * What the standalone services share: a port with JSON over HTTP, its limits and its errors. Knows
 * no service.
 */
package io.kvasir.services.http;
