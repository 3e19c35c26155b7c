/** What both rings share: the thread of a writer and how it waits. */
package io.kvasir.pipeline.ring;
