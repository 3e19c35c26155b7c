package io.kvasir.nixl.engine;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

/** The end of a transfer; its listener is notified before. */
final class TransferFuture extends CompletableFuture<Transfer> implements Transfer.Listener {
    private final Transfer.Listener listener;

    TransferFuture(Transfer.Listener listener) {
        this.listener = listener;
    }

    /** The transfer's own listener. */
    Transfer.Listener listener() {
        return listener;
    }

    @Override
    public void onStage(Transfer transfer, int stage) {
        listener.onStage(transfer, stage);
    }

    @Override
    public void onEnd(Transfer transfer) {
        final Transfer.State end = transfer.state();
        final String why = transfer.failure();
        try {
            listener.onEnd(transfer);
        } finally {
            complete(transfer, end, why);
        }
    }

    private void complete(Transfer transfer, Transfer.State end, String why) {
        switch (end) {
            case DONE -> complete(transfer);
            case CANCELLED -> completeExceptionally(new CancellationException(why));
            case EXPIRED -> completeExceptionally(new TimeoutException(why));
            default -> completeExceptionally(new KvTransportException(Kind.FAILED, why));
        }
    }
}
