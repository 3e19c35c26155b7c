package io.kvasir.sim.events;

/**
 * Events of one step, encoded as they happen in the map form of vLLM 0.32. Owned by the thread of
 * the step loop; reused from step to step.
 *
 * <pre>
 * [timestamp, [event, ...], rank]
 * stored:  type block_hashes parent_block_hash token_ids block_size lora_id medium lora_name
 *          (extra_keys group_idx kv_cache_spec_kind) (session_id)
 * removed: type block_hashes medium (group_idx)
 * cleared: type
 * </pre>
 */
public final class EventBatch {
    private static final String MEDIUM = "GPU";

    private final boolean groupKeys;
    private final MsgPackWriter events = new MsgPackWriter(1024);
    private final MsgPackWriter batch = new MsgPackWriter(1024);
    private int count;

    /**
     * Makes an empty batch.
     *
     * @param groupKeys whether to write what a server writes but a bare event does not have: extra
     *     keys, cache group and kind of attention
     */
    public EventBatch(boolean groupKeys) {
        this.groupKeys = groupKeys;
    }

    /** Events that it has so far. */
    public int count() {
        return count;
    }

    /**
     * Adds a store of consecutive blocks.
     *
     * @param names all names of the sequence
     * @param from first block stored
     * @param to after the last block stored
     * @param tokens all tokens of the sequence
     */
    public void stored(long[] names, int from, int to, int[] tokens, int blockSize, Labels labels) {
        count++;
        events.map((groupKeys ? 11 : 8) + (labels.session() == null ? 0 : 1));
        events.string("type");
        events.string("BlockStored");
        events.string("block_hashes");
        events.array(to - from);
        for (int i = from; i < to; i++) {
            events.unsigned(names[i]);
        }
        events.string("parent_block_hash");
        if (from == 0) {
            events.nil();
        } else {
            events.unsigned(names[from - 1]);
        }
        events.string("token_ids");
        events.array((to - from) * blockSize);
        for (int i = from * blockSize; i < to * blockSize; i++) {
            events.unsigned(tokens[i]);
        }
        events.string("block_size");
        events.unsigned(blockSize);
        events.string("lora_id");
        if (labels.lora() == null) {
            events.nil();
        } else {
            events.unsigned(labels.lora().id());
        }
        events.string("medium");
        events.string(MEDIUM);
        events.string("lora_name");
        if (labels.lora() == null) {
            events.nil();
        } else {
            events.string(labels.loraName());
        }
        if (groupKeys) {
            events.string("extra_keys");
            events.array(to - from);
            for (int i = from; i < to; i++) {
                extraKeys(labels.loraName(), i == 0 ? labels.salt() : null);
            }
            events.string("group_idx");
            events.unsigned(0);
            events.string("kv_cache_spec_kind");
            events.string("full_attention");
        }
        if (labels.session() != null) {
            events.string("session_id");
            events.string(labels.session());
        }
    }

    private void extraKeys(String lora, String salt) {
        if (lora == null && salt == null) {
            events.nil();
            return;
        }
        events.array(lora != null && salt != null ? 2 : 1);
        if (lora != null) {
            events.string(lora);
        }
        if (salt != null) {
            events.string(salt);
        }
    }

    /** Adds the removal of one block. */
    public void removed(long name) {
        count++;
        events.map(groupKeys ? 4 : 3);
        events.string("type");
        events.string("BlockRemoved");
        events.string("block_hashes");
        events.array(1);
        events.unsigned(name);
        events.string("medium");
        events.string(MEDIUM);
        if (groupKeys) {
            events.string("group_idx");
            events.unsigned(0);
        }
    }

    /** Adds the loss of all blocks. */
    public void cleared() {
        count++;
        events.map(1);
        events.string("type");
        events.string("AllBlocksCleared");
    }

    /**
     * Ends the batch and starts an empty one.
     *
     * @param timestamp seconds since the epoch
     * @param rank data-parallel rank
     * @return the message's payload
     */
    public byte[] finish(double timestamp, int rank) {
        batch.clear();
        batch.array(3);
        batch.float64(timestamp);
        batch.array(count);
        batch.append(events);
        batch.unsigned(rank);
        clear();
        return batch.toBytes();
    }

    /** Forgets all events. */
    public void clear() {
        events.clear();
        count = 0;
    }
}
