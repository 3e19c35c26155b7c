package io.kvasir.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.vllm.VllmPeerException;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.List;

class TransferExceptionTest {
    private static List<TransferException.Kind> retryable(TransferException.Kind[] kinds) {
        return Arrays.stream(kinds).filter(TransferException.Kind::retryable).toList();
    }

    @Test
    void whatMayBeBackByItselfIsRetryable() {
        assertEquals(
                List.of(ExchangeException.Kind.NOT_FOUND, ExchangeException.Kind.UNAVAILABLE),
                retryable(ExchangeException.Kind.values()));
        assertEquals(
                List.of(KvTransportException.Kind.CAPACITY),
                retryable(KvTransportException.Kind.values()));
        assertEquals(
                List.of(VllmPeerException.Kind.UNREACHABLE, VllmPeerException.Kind.TIMEOUT),
                retryable(VllmPeerException.Kind.values()));
    }

    @Test
    void anErrorIsAsRetryableAsItsKind() {
        final TransferException error =
                new ExchangeException(ExchangeException.Kind.UNAVAILABLE, "etcd does not answer");
        assertEquals(ExchangeException.Kind.UNAVAILABLE, error.kind());
        assertTrue(error.retryable());
    }
}
