/** Reads recordings of ZMQ traffic. */
package io.kvasir.pipeline.capture;
