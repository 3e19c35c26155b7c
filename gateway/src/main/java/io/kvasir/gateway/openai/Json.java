package io.kvasir.gateway.openai;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

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

    /**
     * All of a request's body as a tree, to be written anew; of a member given twice the last.
     *
     * @throws ApiException 413 if it needs too much memory
     * @throws IOException if it is no JSON object
     */
    static ObjectNode tree(byte[] body) throws ApiException, IOException {
        return tree(body, TreeMeter.usualLimit());
    }

    static ObjectNode tree(byte[] body, long limitBytes) throws ApiException, IOException {
        try (JsonParser json = new TreeMeter(FACTORY.createParser(body), limitBytes)) {
            if (MAPPER.readTree(json) instanceof ObjectNode tree) {
                return tree;
            }
            throw new IOException("the body is no JSON object");
        } catch (TreeMeter.Exceeded e) {
            throw ApiException.tooLarge(e.getMessage());
        }
    }

    /** Writes a body anew for a worker: NaN and infinities stay the numbers they were. */
    static byte[] body(JsonNode tree) throws IOException {
        return AS_READ.writeValueAsBytes(tree);
    }
}
