package io.kvasir.gateway.metrics;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;

/** The series of one worker and one route that requests write to, looked up once. */
record WorkerSeries(
        DistributionDataPoint firstToken,
        DistributionDataPoint timePerToken,
        CounterDataPoint outputTokens) {}
