package io.kvasir.services.select;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.JsonBody;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.indexer.IndexGroup;

/** The prompt of a call: its tokens, or the hashes of its blocks and how long it is. */
final class Prompt {
    private static final String DEFAULT_MODEL = "default";
    private static final long[] NONE = {};

    final long[] localHashes; // of the full blocks; empty where nothing but sequences is known
    final long[] eagleHashes; // as of IndexGroup.eagleHashes; empty where the tokens are not known
    final long[] sequenceHashes; // of the full blocks
    final int tokens;

    private Prompt(long[] localHashes, long[] eagleHashes, long[] sequenceHashes, int tokens) {
        this.localHashes = localHashes;
        this.eagleHashes = eagleHashes;
        this.sequenceHashes = sequenceHashes;
        this.tokens = tokens;
    }

    /** Model and routing group of a call. */
    static GroupKey key(JsonBody body) throws ServiceException {
        return new GroupKey(
                body.text("model_name", DEFAULT_MODEL),
                body.text("routing_group", GroupKey.DEFAULT_GROUP));
    }

    /**
     * Reads one to be looked up.
     *
     * @throws ServiceException 400 if there is neither, or there are other numbers of them
     */
    static Prompt of(JsonBody body, IndexGroup index) throws ServiceException {
        if (!body.isAbsent("token_ids")) {
            return ofTokens(body, index);
        }
        final long[] locals = hashes(body, "block_hashes");
        final long[] sequences = hashes(body, "sequence_hashes");
        if (locals.length != sequences.length) {
            throw new ServiceException(
                    400,
                    "block_hashes length "
                            + locals.length
                            + " must match sequence_hashes length "
                            + sequences.length);
        }
        return new Prompt(locals, NONE, sequences, length(body, sequences, index.blockSize()));
    }

    /**
     * Reads one whose worker is chosen already.
     *
     * @throws ServiceException 400 if there are neither tokens nor hashes
     */
    static Prompt ofReservation(JsonBody body, IndexGroup index) throws ServiceException {
        if (!body.isAbsent("token_ids")) {
            return ofTokens(body, index);
        }
        final long[] sequences = hashes(body, "sequence_hashes");
        return new Prompt(NONE, NONE, sequences, length(body, sequences, index.blockSize()));
    }

    private static Prompt ofTokens(JsonBody body, IndexGroup index) throws ServiceException {
        final int[] ids = body.unsigned32Array("token_ids");
        final int blockSize = index.blockSize();
        final long[] locals = new long[BlockHasher.blockCount(ids.length, blockSize)];
        final long seed =
                BlockHasher.seed(body.textOrNull("lora_name"), body.textOrNull("cache_salt"));
        BlockHasher.localHashes(ids, 0, ids.length, blockSize, seed, locals);
        final long[] sequences = new long[locals.length];
        BlockHasher.sequenceHashes(locals, locals.length, sequences);
        return new Prompt(locals, index.eagleHashes(ids, seed), sequences, ids.length);
    }

    private static long[] hashes(JsonBody body, String name) throws ServiceException {
        if (body.isAbsent(name)) {
            throw new ServiceException(400, name + " is required without token_ids");
        }
        return body.signedArray(name);
    }

    private static int length(JsonBody body, long[] sequences, int blockSize)
            throws ServiceException {
        if (body.isAbsent("isl_tokens")) {
            throw new ServiceException(400, "isl_tokens is required without token_ids");
        }
        final int tokens = body.count("isl_tokens");
        if ((long) sequences.length * blockSize > tokens) {
            throw new ServiceException(
                    400,
                    "isl_tokens="
                            + tokens
                            + " are fewer than those of "
                            + sequences.length
                            + " blocks of "
                            + blockSize);
        }
        return tokens;
    }
}
