package io.kvasir.registry;

/** A key of a {@link LeasedStore} as it is stored. */
public final class Stored {
    private static final byte[] NOTHING = {};

    private final String key;
    private final byte[] value;
    private final long revision;
    private final String unread; // null: the value was read

    /**
     * Takes what was read.
     *
     * @param key without the store's own prefix
     * @param value not copied; null, as some clients give what is empty, is no bytes
     * @param revision above 0; changes with each write of the key
     */
    public Stored(String key, byte[] value, long revision) {
        this(key, value == null ? NOTHING : value, revision, null);
    }

    private Stored(String key, byte[] value, long revision, String unread) {
        this.key = key;
        this.value = value;
        this.revision = revision;
        this.unread = unread;
    }

    /** The same without its value, which is not kept; the cause says why, with the limit. */
    public Stored unread(String cause) {
        return new Stored(key, NOTHING, revision, cause);
    }

    /** The same under another key. */
    public Stored withKey(String other) {
        return new Stored(other, value, revision, unread);
    }

    /** Without the store's own prefix. */
    public String key() {
        return key;
    }

    /** Why its value was not read, and is no bytes here; null where it was. */
    public String unreadOrNull() {
        return unread;
    }

    /** Its bytes; not copied. */
    public byte[] value() {
        return value;
    }

    /** Changes with each write of the key. */
    public long revision() {
        return revision;
    }
}
