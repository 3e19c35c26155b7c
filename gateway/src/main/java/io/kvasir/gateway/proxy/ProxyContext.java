package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.server.AnswerMemory;
import io.kvasir.gateway.server.ResponseCoding;
import io.kvasir.gateway.server.TrustedCallers;
import io.kvasir.gateway.upstream.StaleConnectionDetector;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerKey;

import org.eclipse.jetty.client.HttpClient;

import java.util.Set;

/** What all exchanges of one model share; but for its workers and settings it is the gateway's. */
public record ProxyContext(
        GatewayConfig config,
        HttpClient client,
        StaleConnectionDetector staleConnections,
        WorkerReservations reservations,
        UpstreamRegistry registry,
        GatewayMetrics metrics,
        PredictionFeedback feedback,
        TrustedCallers trusted,
        WorkerKey workerKey,
        ResponseCoding coding,
        AnswerMemory answers,
        SplitContext split,
        Set<ProxyExchange> running) {}
