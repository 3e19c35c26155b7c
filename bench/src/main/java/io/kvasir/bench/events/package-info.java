/** What events cost that come over an event plane. */
package io.kvasir.bench.events;
