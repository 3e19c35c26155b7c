package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.JsonParserDelegate;

import java.io.IOException;

/**
 * A parser whose trees together may take so much memory: a tree of empty objects takes some thirty
 * times the bytes of its text. Texts are not counted, they are no longer than the body. One thread.
 */
final class TreeMeter extends JsonParserDelegate {
    private static final int STRUCT_BYTES = 128;
    private static final int MEMBER_BYTES = 80;
    private static final int VALUE_BYTES = 40;
    private static final int HEAP_SHARE = 8;

    private final long limit;
    private long bytes;

    /** The values of a body need more memory than they may. */
    static final class Exceeded extends IOException {
        private static final long serialVersionUID = 1L;

        Exceeded(long limit) {
            super(
                    "the JSON values of the body need more than "
                            + limit
                            + " bytes of memory, an eighth of the heap; send fewer of them or give"
                            + " the gateway a larger heap (-Xmx in KVASIR_OPTS)");
        }
    }

    TreeMeter(JsonParser json, long limit) {
        super(json);
        this.limit = limit;
    }

    /** What the trees of one body may take. */
    static long usualLimit() {
        return Runtime.getRuntime().maxMemory() / HEAP_SHARE;
    }

    @Override
    public JsonToken nextToken() throws IOException {
        final JsonToken token = super.nextToken();
        if (token != null) {
            bytes +=
                    switch (token) {
                        case START_OBJECT, START_ARRAY -> STRUCT_BYTES;
                        case FIELD_NAME -> MEMBER_BYTES;
                        case END_OBJECT, END_ARRAY -> 0;
                        default -> VALUE_BYTES;
                    };
            if (bytes > limit) {
                throw new Exceeded(limit);
            }
        }
        return token;
    }
}
