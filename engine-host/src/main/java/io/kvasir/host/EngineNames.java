package io.kvasir.host;

import java.util.List;

/**
 * The names that an engine answers to.
 *
 * @param model the model's
 * @param adapters those of LoRA adapters
 */
record EngineNames(String model, List<String> adapters) {
    EngineNames {
        adapters = List.copyOf(adapters);
    }

    /**
     * The name that a request means.
     *
     * @param asked null means the model
     */
    String served(String asked) throws RefusedException {
        if (asked == null || asked.equals(model)) {
            return model;
        }
        if (!adapters.contains(asked)) {
            throw new RefusedException(
                    404, "NotFoundError", "The model `" + asked + "` does not exist.");
        }
        return asked;
    }
}
