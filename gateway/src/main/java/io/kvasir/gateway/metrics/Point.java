package io.kvasir.gateway.metrics;

import java.util.Arrays;

/** Takes one value of a metric and its labels. */
interface Point {
    void call(double value, String... labels);

    /** Takes values of one model, which is their last label. */
    default Point of(String model) {
        return (value, labels) -> {
            final String[] all = Arrays.copyOf(labels, labels.length + 1);
            all[labels.length] = model;
            call(value, all);
        };
    }
}
