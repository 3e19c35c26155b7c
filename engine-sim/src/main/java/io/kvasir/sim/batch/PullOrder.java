package io.kvasir.sim.batch;

/**
 * What a decode engine asks a prefill engine for.
 *
 * @param key request id or room
 * @param engineId life of the prefill engine that is meant, or null for any
 * @param room data-parallel room, -1 when the key is no room; a room is waited for
 * @param model served model of the decode engine
 * @param blockSize tokens per block of the decode engine
 */
public record PullOrder(String key, String engineId, long room, String model, int blockSize) {
    /** Key of a room. */
    public static String roomKey(long room) {
        return "room-" + room;
    }
}
