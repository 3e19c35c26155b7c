package io.kvasir.gateway;

import org.eclipse.jetty.client.HttpClient;

import java.util.Set;

/** What all exchanges of one server share. */
record ProxyContext(
        GatewayConfig config,
        HttpClient client,
        StaleConnectionDetector staleConnections,
        WorkerReservations reservations,
        UpstreamRegistry registry,
        GatewayMetrics metrics,
        PredictionFeedback feedback,
        RetryPolicy.Rules retries,
        TrustedCallers trusted,
        WorkerKey workerKey,
        AnswerCoding coding,
        Set<ProxyExchange> running) {}
