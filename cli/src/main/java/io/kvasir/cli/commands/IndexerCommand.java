package io.kvasir.cli.commands;

import io.kvasir.core.radix.RadixTree;
import io.kvasir.services.indexer.IndexerConfig;
import io.kvasir.services.indexer.IndexerService;
import io.kvasir.services.indexer.InitialWorker;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir indexer}: the prefix index as a service of its own. */
@Command(
        name = "indexer",
        description = {
            "Run the prefix index as an HTTP service.",
            "",
            "Engines are registered over HTTP or with --workers, their KV events come over ZMQ, and"
                + " callers ask which engine holds how many tokens of a prompt. Speaks the HTTP"
                + " interface of NVIDIA Dynamo's standalone indexer. There is no authentication.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir indexer --block-size 16 --model-name m --workers 1=tcp://10.0.0.7:5557",
            "  kvasir indexer --peers http://indexer-0:8090,http://indexer-1:8090",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use."
        })
public final class IndexerCommand implements Callable<Integer> {
    private static final int USUAL_PORT = 8090;

    @Mixin private CommonOptions common;

    @Mixin private final ServiceOptions listen = new ServiceOptions(USUAL_PORT);

    @Mixin private IndexOptions indexes;

    @Option(
            names = "--workers",
            paramLabel = "ID[:DP]=ADDRESS,...",
            description =
                    "Engines to register at the start, with the ZMQ addresses of their events."
                            + " Needs --block-size.")
    private String workers;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            description = "Tokens per block of the engines of --workers.")
    private Integer blockSize;

    @Option(
            names = "--model-name",
            defaultValue = "default",
            description = "Model of the engines of --workers. Default: ${DEFAULT-VALUE}.")
    private String model;

    @Option(
            names = "--routing-group",
            defaultValue = "default",
            description = "Routing group of the engines of --workers. Default: ${DEFAULT-VALUE}.")
    private String routingGroup;

    @Option(
            names = "--peers",
            paramLabel = "URL",
            split = ",",
            description =
                    "Indexers that are asked for their dump at the start; the first that gives it"
                            + " whole is enough.")
    private List<String> peers = new ArrayList<>();

    @Option(
            names = "--max-workers",
            paramLabel = "N",
            defaultValue = "4096",
            description =
                    "(Instance, dp rank) pairs of one model and routing group at once. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int maxWorkers;

    @Override
    public Integer call() throws IOException, InterruptedException {
        listen.check(common);
        indexes.check(common);
        common.within("--max-workers", maxWorkers, 1, RadixTree.MAX_WORKER_SLOTS);
        if (blockSize != null) {
            common.atLeast("--block-size", blockSize, 1);
        }
        final IndexerService service = common.made(() -> new IndexerService(config()));
        return listen.run(common, "indexer", service::start, service::close, service::port);
    }

    private IndexerConfig config() {
        return IndexerConfig.of(listen.host(), listen.port())
                .withWorkers(initialWorkers())
                .withPeers(peers.stream().map(this::peer).toList())
                .withSizes(maxWorkers, indexes.maxModels(), indexes.indexBytes());
    }

    private List<InitialWorker> initialWorkers() {
        if (workers == null) {
            return List.of();
        }
        if (blockSize == null) {
            throw common.wrong("--workers needs --block-size");
        }
        return common.made(
                "--workers: ", () -> InitialWorker.parse(workers, model, routingGroup, blockSize));
    }

    private URI peer(String url) {
        try {
            final URI uri = URI.create(url);
            if ("http".equals(uri.getScheme()) || "https".equals(uri.getScheme())) {
                return uri;
            }
        } catch (IllegalArgumentException e) {
            throw common.wrong("--peers " + url + ": " + e.getMessage());
        }
        throw common.wrong("--peers " + url + " is no http:// or https:// address");
    }
}
