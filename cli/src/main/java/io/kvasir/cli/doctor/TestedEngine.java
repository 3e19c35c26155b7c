package io.kvasir.cli.doctor;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.prompt.chat.ChatModel;

/**
 * An engine, and what it is expected to be.
 *
 * @param worker its URL and endpoints
 * @param modelOrNull name of the model; null for whatever it serves
 * @param blockSize tokens of a block; 0 for whatever it says
 * @param encoderOrNull tokenizer and template of the model; not closed here
 * @param keyOrNull value of Authorization; null for none
 */
public record TestedEngine(
        WorkerConfig worker,
        String modelOrNull,
        int blockSize,
        ChatModel encoderOrNull,
        String keyOrNull) {
    /** Authorization that it gets: its own credentials before the common key. */
    String authorizationOrNull() {
        return worker.credentials() == null ? keyOrNull : worker.credentials().value();
    }
}
