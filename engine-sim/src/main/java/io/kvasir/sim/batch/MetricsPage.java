package io.kvasir.sim.batch;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.state.SimState;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;

/** The metrics of an engine under vLLM's names. Runs on the step loop's thread. */
public final class MetricsPage {
    private final SimConfig config;
    private final String model;
    private final RankScheduler[] ranks;
    private final StringBuilder out = new StringBuilder(8192);

    private interface Value {
        double of(RankScheduler rank);
    }

    private interface Times {
        Histogram of(RankScheduler rank);
    }

    /** A page of all ranks of an engine. */
    public MetricsPage(SimConfig config, RankScheduler[] ranks) {
        this.config = config;
        this.model = config.model().replace("\\", "\\\\").replace("\"", "\\\"");
        this.ranks = ranks;
    }

    /** The page now, in the text format of Prometheus. */
    public String write() {
        gauge(
                "num_requests_running",
                "Number of requests in model execution batches.",
                r -> r.state().running());
        gauge(
                "num_requests_waiting",
                "Number of requests waiting to be processed.",
                r -> r.state().waiting());
        gauge(
                "kv_cache_usage_perc",
                "KV-cache usage. 1 means 100 percent usage.",
                MetricsPage::usage);
        counter(
                "prefix_cache_queries",
                "Prefix cache queries, in terms of number of queried tokens.",
                r -> r.stats().queriedTokens);
        counter(
                "prefix_cache_hits",
                "Prefix cache hits, in terms of number of cached tokens.",
                r -> r.stats().hitTokens);
        counter(
                "num_preemptions",
                "Cumulative number of preemption from the engine.",
                r -> r.stats().preemptions);
        counter(
                "prompt_tokens",
                "Number of prefill tokens processed.",
                r -> r.stats().promptTokens);
        counter(
                "prompt_tokens_cached",
                "Number of cached prompt tokens.",
                r -> r.stats().promptTokensCached);
        counter(
                "generation_tokens",
                "Number of generation tokens processed.",
                r -> r.stats().generationTokens);
        type("request_success_total", "Count of successfully processed requests.", "counter");
        for (RankScheduler rank : ranks) {
            success(rank, "stop", rank.stats().stopped);
            success(rank, "length", rank.stats().reachedLength);
            success(rank, "abort", rank.stats().aborted);
        }
        histogram(
                "time_to_first_token_seconds",
                "Histogram of time to first token in seconds.",
                r -> r.stats().timeToFirstToken);
        histogram(
                "inter_token_latency_seconds",
                "Histogram of inter-token latency in seconds.",
                r -> r.stats().interTokenLatency);
        histogram(
                "e2e_request_latency_seconds",
                "Histogram of e2e request latency in seconds.",
                r -> r.stats().endToEnd);
        histogram(
                "request_queue_time_seconds",
                "Histogram of time spent in WAITING phase for request.",
                r -> r.stats().queueTime);
        if (config.handoff().role() != SimRole.BOTH) {
            handoffs();
        }
        cacheConfig();
        return out.toString();
    }

    private void handoffs() {
        counter(
                "external_prefix_cache_queries",
                "External prefix cache queries from KV connector cross-instance cache sharing, in"
                        + " terms of number of queried tokens.",
                r -> r.stats().handoff.queriedTokens);
        counter(
                "external_prefix_cache_hits",
                "External prefix cache hits from KV connector cross-instance cache sharing, in"
                        + " terms of number of cached tokens.",
                r -> r.stats().handoff.receivedTokens);
        counter(
                "nixl_num_failed_transfers",
                "Number of failed NIXL KV Cache transfers.",
                r -> r.stats().handoff.failedPulls);
        counter(
                "nixl_num_kv_expired_reqs",
                "Number of requests that had their KV expire. NOTE: This metric is tracked on the"
                        + " P instance.",
                r -> r.stats().handoff.freedByLeaseEnd);
        counter(
                "nixl_num_notifications_after_expiry",
                "Number of completion notifications for requests that were no longer tracked.",
                r -> r.stats().handoff.lateNotifications);
        own(
                "held_prefills",
                "Prefills whose blocks wait for a decode.",
                HandoffState::heldPrefills);
        own("held_blocks", "Blocks of held prefills.", HandoffState::heldBlocks);
        own("receiving_requests", "Requests that wait for blocks.", HandoffState::receiving);
        own("freed_by_pull_total", "Held prefills that were pulled.", HandoffState::freedByPull);
        own(
                "freed_by_notification_total",
                "Held prefills that were given up by a notification.",
                HandoffState::freedByNotification);
        own(
                "freed_by_lease_end_total",
                "Held prefills whose decode did not come in time.",
                HandoffState::freedByLeaseEnd);
        own("pulls_total", "Requests whose blocks were received.", HandoffState::pulls);
        own(
                "stale_pulls_total",
                "Pulls of blocks that were not those of the prompt.",
                HandoffState::stalePulls);
        own("failed_pulls_total", "Requests that failed in a pull.", HandoffState::failedPulls);
        own(
                "spoiled_pulls_total",
                "Failed pulls whose bytes were not those of the prompt.",
                HandoffState::spoiledPulls);
        own("transferred_blocks_total", "Blocks received.", HandoffState::transferredBlocks);
        own("transferred_bytes_total", "Bytes received.", HandoffState::transferredBytes);
    }

    /** Writes what only the simulator knows. */
    private void own(String name, String help, ToLongFunction<HandoffState> value) {
        final String full = "kvasir_sim_" + name;
        out.append("# HELP ").append(full).append(' ').append(help).append('\n');
        out.append("# TYPE ").append(full);
        out.append(name.endsWith("_total") ? " counter\n" : " gauge\n");
        for (RankScheduler rank : ranks) {
            out.append(full).append("{engine=\"").append(engine(rank));
            out.append("\",model_name=\"").append(model).append("\"} ");
            out.append((double) value.applyAsLong(rank.handoffs())).append('\n');
        }
    }

    private static double usage(RankScheduler rank) {
        final SimState state = rank.state();
        return 1 - (double) state.freeBlocks() / state.blocks();
    }

    private void gauge(String name, String help, Value value) {
        type(name, help, "gauge");
        for (RankScheduler rank : ranks) {
            line(name, rank, value.of(rank));
        }
    }

    private void counter(String name, String help, Value value) {
        type(name + "_total", help, "counter");
        for (RankScheduler rank : ranks) {
            line(name + "_total", rank, value.of(rank));
        }
    }

    private void histogram(String name, String help, Times times) {
        type(name, help, "histogram");
        for (RankScheduler rank : ranks) {
            times.of(rank).write(out, "vllm:" + name, engine(rank), model);
        }
    }

    private void success(RankScheduler rank, String reason, long count) {
        out.append("vllm:request_success_total{engine=\"")
                .append(engine(rank))
                .append("\",finished_reason=\"")
                .append(reason)
                .append("\",model_name=\"")
                .append(model)
                .append("\"} ")
                .append((double) count)
                .append('\n');
    }

    private void cacheConfig() {
        type("cache_config_info", "Information of the LLMEngine CacheConfig", "gauge");
        for (RankScheduler rank : ranks) {
            final Map<String, String> labels = new TreeMap<>();
            labels.put("block_size", Integer.toString(config.blockSize()));
            labels.put("cache_dtype", "auto");
            labels.put("enable_prefix_caching", "True");
            labels.put("engine", engine(rank));
            labels.put(
                    "kv_cache_size_tokens",
                    Long.toString((long) config.blocks() * config.blockSize()));
            labels.put("num_gpu_blocks", Integer.toString(config.blocks()));
            labels.put("prefix_caching_hash_algo", "sha256");
            out.append("vllm:cache_config_info{");
            String separator = "";
            for (Map.Entry<String, String> label : labels.entrySet()) {
                out.append(separator).append(label.getKey()).append("=\"");
                out.append(label.getValue()).append('"');
                separator = ",";
            }
            out.append("} 1.0\n");
        }
    }

    private void type(String name, String help, String type) {
        out.append("# HELP vllm:").append(name).append(' ').append(help).append('\n');
        out.append("# TYPE vllm:").append(name).append(' ').append(type).append('\n');
    }

    private void line(String name, RankScheduler rank, double value) {
        out.append("vllm:")
                .append(name)
                .append("{engine=\"")
                .append(engine(rank))
                .append("\",model_name=\"")
                .append(model)
                .append("\"} ")
                .append(value)
                .append('\n');
    }

    private static String engine(RankScheduler rank) {
        return Integer.toString(rank.state().rank());
    }
}
