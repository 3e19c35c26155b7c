package io.kvasir.nixl.vllm;

/**
 * Which of the model's KV heads one rank of a tensor parallel engine holds: an equal share of them,
 * or, with more ranks than heads, one head that its neighbours hold too. Immutable.
 *
 * <pre>
 *   8 heads, 4 ranks   | 0 1 | 2 3 | 4 5 | 6 7 |      rank r holds 2 r and 2 r + 1
 *   2 heads, 4 ranks   |  0  |  0  |  1  |  1  |      rank r holds r / 2
 * </pre>
 *
 * @param rank from 0
 * @param size number of ranks
 * @param kvHeads KV heads of the model; 1 for latent attention (MLA), which every rank holds whole
 */
public record TensorRank(int rank, int size, int kvHeads) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value that cannot be
     */
    public TensorRank {
        if (size < 1) {
            throw new IllegalArgumentException("an engine has at least 1 rank, not " + size);
        }
        if (rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "ranks are 0.." + (size - 1) + ", not " + rank + ", of " + size);
        }
        if (kvHeads < 1) {
            throw new IllegalArgumentException("a model has at least 1 KV head, not " + kvHeads);
        }
        if (kvHeads % size != 0 && size % kvHeads != 0) {
            throw new IllegalArgumentException(
                    kvHeads + " KV heads cannot be shared equally by " + size + " ranks");
        }
    }

    /**
     * A rank that holds all heads.
     *
     * @param kvHeads KV heads of the model
     * @return the only rank of its engine
     * @throws IllegalArgumentException if there is no head
     */
    public static TensorRank only(int kvHeads) {
        return new TensorRank(0, 1, kvHeads);
    }

    /**
     * The first head that it holds.
     *
     * @return 0..kvHeads - 1
     */
    public int firstHead() {
        return Math.toIntExact((long) rank * kvHeads / size);
    }

    /**
     * How many heads it holds.
     *
     * @return at least 1
     */
    public int heads() {
        return Math.max(1, kvHeads / size);
    }
}
