package io.kvasir.sim.events;

/**
 * What a request says about its blocks besides their tokens.
 *
 * @param lora adapter, or null for the base model
 * @param salt cache salt or null; enters the first block's name and with it all others
 * @param session session id that every store of the request repeats, or null
 */
public record Labels(Adapter lora, String salt, String session) {
    /** A request that says nothing. */
    public static final Labels NONE = new Labels(null, null, null);

    /** A LoRA adapter as events name it: ids count from 1. */
    public record Adapter(int id, String name) {}

    /** Name of the adapter or null. */
    public String loraName() {
        return lora == null ? null : lora.name();
    }
}
