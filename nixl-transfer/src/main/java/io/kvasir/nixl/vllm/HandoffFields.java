package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.RemoteBlocks;

import java.nio.charset.StandardCharsets;
import java.util.Optional;

/** Fields of a prefill answer that a peer cannot do without; each is refused by name. */
final class HandoffFields {
    private static final int MOST_RANKS = 4_096;

    /** Leaves room for what a completion or a heartbeat has beside one: a mark, or a number. */
    private static final int MOST_ID_BYTES = KvTransport.MAX_MESSAGE - 16;

    private HandoffFields() {}

    static String engineId(KvTransferParams params) {
        return required(params.remoteEngineId(), "remote_engine_id");
    }

    /** One that fits in a message: blocks can only be kept alive and given back by name. */
    static String requestId(KvTransferParams params) {
        final String id = required(params.remoteRequestId(), "remote_request_id");
        final int length = id.getBytes(StandardCharsets.UTF_8).length;
        if (length > MOST_ID_BYTES) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNSUPPORTED,
                    "remote_request_id of "
                            + length
                            + " bytes fits in no message to its engine, at most "
                            + MOST_ID_BYTES
                            + " do");
        }
        return id;
    }

    static String host(KvTransferParams params) {
        return required(params.remoteHost(), "remote_host");
    }

    static int port(KvTransferParams params) {
        return params.remotePort().orElseThrow(() -> missing("remote_port"));
    }

    static RemoteBlocks blocks(KvTransferParams params) {
        return required(params.remoteBlocks(), "remote_block_ids");
    }

    private static <T> T required(Optional<T> value, String field) {
        return value.orElseThrow(() -> missing(field));
    }

    private static VllmPeerException missing(String field) {
        return new VllmPeerException(
                VllmPeerException.Kind.MALFORMED,
                "kv_transfer_params have no usable "
                        + field
                        + ": is this the answer of a prefill that was asked with"
                        + " do_remote_decode?");
    }

    /** Tensor parallel ranks of the engine; 1 if it does not say. */
    static int tensorSize(KvTransferParams params) {
        final int size = params.tpSize().orElse(1);
        if (size < 1 || size > MOST_RANKS) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.MALFORMED,
                    "tp_size=" + size + ": an engine has 1.." + MOST_RANKS + " ranks");
        }
        return size;
    }

    /** Refuses engines whose ranks hold some layers or some blocks only, and those that push. */
    static void requirePlainPull(KvTransferParams params) {
        requireOne(params, "pp_size");
        requireOne(params, "dcp_size");
        params.transferMode()
                .filter(mode -> !mode.equals("pull"))
                .ifPresent(
                        mode -> {
                            throw new VllmPeerException(
                                    VllmPeerException.Kind.UNSUPPORTED,
                                    "transfer_mode " + mode + " is not supported, only pull");
                        });
    }

    private static void requireOne(KvTransferParams params, String field) {
        final Optional<byte[]> value = params.json().value(field);
        if (value.isEmpty()) {
            return;
        }
        final String text = new String(value.get(), StandardCharsets.UTF_8);
        if (!text.equals("1") && !text.equals("null")) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNSUPPORTED,
                    field + "=" + text + " is not supported, only 1");
        }
    }
}
