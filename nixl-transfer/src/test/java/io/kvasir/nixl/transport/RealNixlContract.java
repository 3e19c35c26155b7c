package io.kvasir.nixl.transport;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * NIXL's transport keeps the contract over the real library. Run as a program, which prints a line
 * for each test: a library with threads of its own is not loaded into the JVM of the tests.
 */
class RealNixlContract extends KvTransportContract {
    static final String RESULT = "RESULT";

    @Override
    protected KvTransport open(String name) {
        return Transports.create("nixl", name);
    }

    @Override
    protected boolean slowDown() {
        return String.valueOf(System.getenv("UCX_TLS")).startsWith("tcp"); // slow by itself
    }

    public static void main(String[] args) {
        LauncherFactory.create()
                .execute(
                        LauncherDiscoveryRequestBuilder.request()
                                .selectors(DiscoverySelectors.selectClass(RealNixlContract.class))
                                .build(),
                        new TestExecutionListener() {
                            @Override
                            public void executionFinished(
                                    TestIdentifier test, TestExecutionResult result) {
                                print(test, result);
                            }
                        });
    }

    private static void print(TestIdentifier test, TestExecutionResult result) {
        if (test.isContainer() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
            return;
        }
        final String name =
                test.getUniqueIdObject().getSegments().stream()
                        .skip(2)
                        .map(segment -> segment.getValue())
                        .reduce((container, inner) -> container + inner)
                        .orElse(test.getDisplayName());
        System.out.println(
                String.join(
                        "\t",
                        RESULT,
                        result.getStatus().name(),
                        name,
                        result.getThrowable()
                                .map(Throwable::getMessage)
                                .orElse("")
                                .replace('\n', ' ')));
        if (result.getStatus() == TestExecutionResult.Status.FAILED) {
            result.getThrowable().ifPresent(Throwable::printStackTrace);
        }
    }
}
