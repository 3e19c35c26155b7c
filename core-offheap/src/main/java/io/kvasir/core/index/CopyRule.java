package io.kvasir.core.index;

/** What one removal of a block says about the copies of it that an engine holds. */
public enum CopyRule {
    /** The engine announces every physical copy: a removal takes one copy away. */
    PHYSICAL,
    /** The engine announces a removal when the last copy goes: a removal takes all away. */
    LAST_COPY
}
