package io.kvasir.services.testing;

import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** An engine's event socket, as vLLM has it, on a free port. One thread. */
public final class EnginePublisher implements AutoCloseable {
    private final ZContext context = new ZContext(1);
    private final ZMQ.Socket events = context.createSocket(SocketType.XPUB);
    private final int dpRank;
    private long sequence;
    private String medium = "GPU";

    /** Binds a free port. */
    public EnginePublisher(int dpRank) {
        this.dpRank = dpRank;
        events.setLinger(0);
        events.setSndHWM(0);
        events.setXpubVerbose(true); // each subscriber is seen, not the first one alone
        events.bind("tcp://127.0.0.1:*");
    }

    /** Address of the socket. */
    public String endpoint() {
        return events.getLastEndpoint();
    }

    /** Waits until someone listens: from then on nothing is missed. */
    public EnginePublisher awaitSubscriber() {
        events.setReceiveTimeOut(60_000);
        final byte[] subscription = events.recv();
        if (subscription == null || subscription.length == 0 || subscription[0] != 1) {
            throw new IllegalStateException("no subscription within a minute");
        }
        return this;
    }

    /** Sets the number of the next message. */
    public EnginePublisher at(long next) {
        sequence = next;
        return this;
    }

    /** Sets where the blocks of further events are. */
    public EnginePublisher in(String where) {
        medium = where;
        return this;
    }

    /** Announces blocks of four tokens after a parent; null starts a prompt. */
    public void stored(Long parent, List<Long> hashes, int... tokens) {
        stored(parent, hashes, Arrays.stream(tokens).boxed().toList());
    }

    /**
     * The same as an engine that drafts with EAGLE does: each token with the one after it.
     *
     * @param tokens those of the blocks, and one more
     */
    public void storedInPairs(Long parent, List<Long> hashes, int... tokens) {
        stored(
                parent,
                hashes,
                IntStream.range(0, tokens.length - 1)
                        .mapToObj(at -> List.of(tokens[at], tokens[at + 1]))
                        .toList());
    }

    private void stored(Long parent, List<Long> hashes, List<?> tokens) {
        final Map<String, Object> event = new TreeMap<>();
        event.put("type", "BlockStored");
        event.put("block_hashes", hashes);
        event.put("parent_block_hash", parent);
        event.put("token_ids", tokens);
        event.put("block_size", tokens.size() / hashes.size());
        event.put("lora_id", null);
        event.put("medium", medium);
        send(event);
    }

    /** Announces that blocks are removed. */
    public void removed(Long... hashes) {
        send(Map.of("type", "BlockRemoved", "block_hashes", List.of(hashes), "medium", medium));
    }

    private void send(Map<String, Object> event) {
        events.send("", ZMQ.SNDMORE);
        events.send(ByteBuffer.allocate(8).putLong(sequence++).array(), ZMQ.SNDMORE);
        final List<Object> batch = new ArrayList<>();
        batch.add(1.5);
        batch.add(List.of(event));
        batch.add(dpRank);
        events.send(pack(batch), 0);
    }

    private static byte[] pack(Object value) {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            pack(value, packer);
            return packer.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void pack(Object value, MessageBufferPacker packer) throws IOException {
        switch (value) {
            case null -> packer.packNil();
            case Integer number -> packer.packInt(number);
            case Long number -> packer.packLong(number);
            case BigInteger number -> packer.packBigInteger(number);
            case Double number -> packer.packDouble(number);
            case String text -> packer.packString(text);
            case List<?> list -> {
                packer.packArrayHeader(list.size());
                for (Object element : list) {
                    pack(element, packer);
                }
            }
            case Map<?, ?> map -> {
                packer.packMapHeader(map.size());
                // the type comes first, as engines write it
                if (map.containsKey("type")) {
                    packer.packString("type");
                    pack(map.get("type"), packer);
                }
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    if (!"type".equals(entry.getKey())) {
                        packer.packString((String) entry.getKey());
                        pack(entry.getValue(), packer);
                    }
                }
            }
            default -> throw new IllegalArgumentException(value.toString());
        }
    }

    @Override
    public void close() {
        events.close();
        context.close();
    }
}
