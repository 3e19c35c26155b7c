package io.kvasir.nixl.vllm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * A message between the workers of two vLLM engines, carried by a transport's notifications.
 *
 * <pre>
 *   completion         request id ":" consumers      blocks were read (pull) or written (push)
 *   heartbeat          "HB:" id "," id ...           their leases go on
 *   push registration  "PUSH_REG:" msgpack map       a decode engine waits for blocks to be pushed
 * </pre>
 */
public sealed interface VllmNotification {
    /**
     * One of {@code consumers} readers is done; the holder frees the blocks after that many. Sent
     * without a read it frees blocks that no decode will fetch.
     *
     * @param requestId the receiver's name of the request
     * @param consumers how many such messages the holder waits for, at least 1
     */
    record Completion(String requestId, int consumers) implements VllmNotification {
        /**
         * Checks that the receiver will take it for what it is.
         *
         * @throws IllegalArgumentException if the identifier begins like another message or there
         *     is no consumer
         */
        public Completion {
            if (requestId.startsWith(NotificationCodec.HEARTBEAT)
                    || requestId.startsWith(NotificationCodec.PUSH_REGISTRATION)) {
                throw new IllegalArgumentException(
                        "request id " + requestId + " would be taken for another message");
            }
            if (consumers < 1) {
                throw new IllegalArgumentException("consumers cannot be " + consumers);
            }
        }
    }

    /**
     * Extends leases.
     *
     * @param requestIds the receiver's names of the requests; one with a comma cannot be sent
     */
    record Heartbeat(List<String> requestIds) implements VllmNotification {
        /**
         * Copies the list.
         *
         * @throws IllegalArgumentException if an identifier is empty or holds a comma
         */
        public Heartbeat {
            requestIds = List.copyOf(requestIds);
            for (String id : requestIds) {
                if (id.isEmpty() || id.indexOf(',') >= 0) {
                    throw new IllegalArgumentException(
                            "a heartbeat cannot name request '" + id + "': commas separate names");
                }
            }
        }
    }

    /**
     * One end of a push.
     *
     * @param engineId the engine
     * @param host of its side channel
     * @param port of its side channel
     * @param tensorRanks its tensor parallelism
     */
    record Endpoint(String engineId, String host, int port, int tensorRanks) {}

    /**
     * A decode engine asks a prefill engine to push blocks.
     *
     * @param requestId the decode engine's name of the request
     * @param decode the asking end
     * @param blocks the decode engine's blocks per KV cache group
     * @param prefill the asked end
     * @param prefillPipelineRanks pipeline parallelism of the asked end
     * @param others fields that are not known here, encoded; kept
     */
    record PushRegistration(
            String requestId,
            Endpoint decode,
            List<List<Integer>> blocks,
            Endpoint prefill,
            int prefillPipelineRanks,
            Map<String, OpaqueBytes> others)
            implements VllmNotification {
        /** Copies the collections. */
        public PushRegistration {
            blocks = blocks.stream().map(List::copyOf).toList();
            others = Map.copyOf(others);
        }
    }

    /**
     * Bytes that are none of the others.
     *
     * @param message as received
     */
    record Unknown(OpaqueBytes message) implements VllmNotification {}

    /**
     * Reads a message; never fails.
     *
     * @param message any bytes; copied
     * @return what it says, {@link Unknown} where that is not known
     */
    static VllmNotification parse(byte[] message) {
        return NotificationCodec.parse(message);
    }

    /**
     * Reads a message out of a transport's callback; never fails.
     *
     * @param message any bytes; copied
     * @return what it says, {@link Unknown} where that is not known
     */
    static VllmNotification parse(MemorySegment message) {
        return NotificationCodec.parse(message.toArray(ValueLayout.JAVA_BYTE));
    }

    /**
     * Writes the message.
     *
     * @return its bytes
     */
    default byte[] encode() {
        return switch (this) {
            case Completion(String requestId, int consumers) ->
                    (requestId + ":" + consumers).getBytes(StandardCharsets.UTF_8);
            case Heartbeat(List<String> ids) ->
                    (NotificationCodec.HEARTBEAT + String.join(",", ids))
                            .getBytes(StandardCharsets.UTF_8);
            case PushRegistration registration -> NotificationCodec.encode(registration);
            case Unknown(OpaqueBytes message) -> message.toArray();
        };
    }
}
