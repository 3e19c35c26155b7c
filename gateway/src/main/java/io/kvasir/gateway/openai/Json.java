package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.json.JsonMapper;

import java.io.IOException;

/** The one JSON mapper; strings are limited by the body limit alone. */
public final class Json {
    /**
     * Python takes whole numbers of up to 4300 digits, others of any length: engines refuse what is
     * too long for them, this only bounds the cost of reading one.
     */
    private static final int MAX_NUMBER_LENGTH = 20_000;

    public static final ObjectMapper MAPPER =
            JsonMapper.builder(
                            JsonFactory.builder()
                                    .streamReadConstraints(
                                            StreamReadConstraints.builder()
                                                    .maxStringLength(Integer.MAX_VALUE)
                                                    .maxNumberLength(MAX_NUMBER_LENGTH)
                                                    .build())
                                    .build())
                    .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS) // as Python's json
                    .build();
    public static final JsonFactory FACTORY = MAPPER.getFactory();

    private static final ObjectWriter AS_READ =
            MAPPER.writer().without(JsonWriteFeature.WRITE_NAN_AS_STRINGS);

    private Json() {}

    /** Writes a body anew for a worker: NaN and infinities stay the numbers they were. */
    static byte[] body(JsonNode tree) throws IOException {
        return AS_READ.writeValueAsBytes(tree);
    }
}
