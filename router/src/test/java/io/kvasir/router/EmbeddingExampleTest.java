package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** The example that README.md shows: the lines between the marks stand there, word for word. */
class EmbeddingExampleTest {
    private final int[] promptIds = {1, 2, 3};

    private static String send(String url, int[] promptIds, Runnable firstToken) {
        firstToken.run();
        return promptIds.length + " tokens to " + url;
    }

    @Test
    void aRequestIsRoutedBookedAndReleased() throws RouteException {
        String answer;
        // example
        try (KvRouter router = KvRouter.builder().blockSize(16).build()) {
            router.addWorker(WorkerSpec.of(1, "a", "http://10.0.0.1:8000"));
            RouteRequest request = router.newRequest().tokens(promptIds, promptIds.length);
            try (Lease lease = router.reserve(request, new Decision())) {
                answer = send(lease.worker().url(), promptIds, lease::prefillComplete);
            }
        }
        // example ends
        assertEquals("3 tokens to http://10.0.0.1:8000", answer);
    }
}
