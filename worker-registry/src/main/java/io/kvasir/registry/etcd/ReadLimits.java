package io.kvasir.registry.etcd;

/**
 * What is read of etcd at most, whatever others have written below the prefix.
 *
 * @param answerBytes of one answer, or of one message of a watch, as it is sent
 * @param valueBytes of one value; a larger one is not kept
 * @param totalBytes of all keys and values of one range; further values are not kept
 */
record ReadLimits(int answerBytes, int valueBytes, long totalBytes) {
    /** Two of the largest values that etcd takes unless it is configured otherwise, in base64. */
    private static final int ANSWER_BYTES = 4 << 20;

    private static final int SHARE_OF_HEAP = 8;

    /** With values of up to this many bytes, and all of them in an eighth of the heap. */
    static ReadLimits ofValues(int valueBytes) {
        return new ReadLimits(
                ANSWER_BYTES, valueBytes, Runtime.getRuntime().maxMemory() / SHARE_OF_HEAP);
    }

    /** With values of any size that one answer can have. */
    static ReadLimits ofAnswers() {
        return ofValues(ANSWER_BYTES);
    }

    /** Why a value that makes an answer too large is not there. */
    String tooLargeForAnAnswer() {
        return "its value makes an answer of etcd of more than "
                + answerBytes
                + " bytes, which are the most that is read";
    }
}
