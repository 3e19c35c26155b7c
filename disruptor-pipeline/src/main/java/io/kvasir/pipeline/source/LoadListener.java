package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.LoadStat;

/** Takes the load reports that an engine sends among its events. */
@FunctionalInterface
public interface LoadListener {
    /**
     * Called on the thread that received the message, with the stream's lock held: must not wait.
     *
     * @param sequence the engine's number of it, which events have no part in
     * @param load valid during the call
     */
    void reported(long sequence, LoadStat load);
}
