package io.kvasir.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.router.Worker;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.load.ReportedLoad;

import java.util.concurrent.TimeUnit;

/** What a worker's engine reports of its load, as the page of workers shows it. */
final class LoadView {
    private LoadView() {}

    /** Adds whether the worker is full, and what is reported of it. */
    static void put(ObjectNode item, Worker worker) {
        item.put("busy", worker.busyState().spelling());
        item.put("busy_reason", worker.whyFullOrNull());
        final ReportedLoad reported = worker.reportedLoadOrNull();
        if (reported == null) {
            item.putNull("engine_load");
        } else {
            final ObjectNode load = item.putObject("engine_load");
            load.put("source", reported.source().spelling());
            known(load, "running", reported.load().running());
            known(load, "waiting", reported.load().waiting());
            known(load, "used_blocks", reported.load().usedBlocks());
            known(load, "blocks", reported.load().blocks());
            load.put("others_requests", reported.others().requests());
            load.put("others_blocks", reported.others().blocks());
            load.put("others_prefill_tokens", reported.others().prefillTokens());
        }
        final ObjectNode ages = item.putObject("load_report_age_ms");
        for (LoadSource source : LoadSource.values()) {
            final long ns = worker.loadSilentNs(source);
            if (ns >= 0) {
                ages.put(source.spelling(), TimeUnit.NANOSECONDS.toMillis(ns));
            }
        }
    }

    private static void known(ObjectNode node, String name, long value) {
        if (value == EngineLoad.UNKNOWN) {
            node.putNull(name);
        } else {
            node.put(name, value);
        }
    }
}
