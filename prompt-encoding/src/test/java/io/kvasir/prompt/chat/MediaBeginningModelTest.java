package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

/**
 * Random chats with media, beside the prompt that vLLM makes of each: what a chat is said to begin
 * with is what its prompt begins with, up to the first of the media or nearly so.
 */
class MediaBeginningModelTest {
    private static final String IMAGE = "<image>";
    private static final String TURN = "{% for m in messages %}[{{ m['role'] }}] ";
    private static final String END = "{{ '\\n' }}{% endfor %}[assistant] ";
    private static final String STRING =
            "{% if m['content'] is string %}{{ m['content'] }}{% else %}";

    /** How templates take what is no text. */
    enum Kind {
        IN_ORDER(
                STRING
                        + "{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}"
                        + "{% else %}<image>{% endif %}{% endfor %}{% endif %}"),
        FIRST(
                STRING
                        + "{% for p in m['content'] %}{% if p['type'] != 'text' %}<image>"
                        + "{% endif %}{% endfor %}{% for p in m['content'] %}"
                        + "{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}"
                        + "{% endif %}"),
        /** vLLM puts the media's words before those of their message. */
        STRINGS("{{ m['content'] }}");

        private final String template;

        Kind(String content) {
            template = TURN + content + END;
        }
    }

    @TempDir private static Path folder;

    private static ChatModel model(Kind kind) throws Exception {
        final ObjectMapper mapper = new ObjectMapper();
        final Path model = Files.createDirectories(folder.resolve(kind.name()));
        Files.write(
                model.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        final ObjectNode config = mapper.createObjectNode();
        config.put("tokenizer_class", "PreTrainedTokenizerFast");
        config.put("chat_template", kind.template);
        config.putObject("extra_special_tokens").put("image_token", IMAGE);
        mapper.writeValue(model.resolve("tokenizer_config.json").toFile(), config);
        return ChatModel.load(model);
    }

    @ParameterizedTest
    @EnumSource
    void whatAChatBeginsWithIsWhatItsPromptBeginsWith(Kind kind) throws Exception {
        try (ChatModel model = model(kind)) {
            final int image = model.encode(IMAGE, false)[0];
            final int trials = Trials.of(100, 3_000);
            int found = 0;
            for (int trial = 0; trial < trials; trial++) {
                final Chat chat = new Chat(new Random(trial), kind);
                final String message = "seed=" + trial + " " + chat.request;
                assertEquals(chat.hasMedia, ChatModel.hasMedia(chat.request), message);
                final int[] prompt = model.encode(chat.text.toString(), false);
                if (!chat.hasMedia) {
                    assertArrayEquals(prompt, model.chatTokens(chat.request), message);
                    continue;
                }
                int before = 0;
                while (prompt[before] != image) {
                    before++;
                }
                final int[] known = model.tokensBeforeMedia(chat.request, Integer.MAX_VALUE, null);
                assertArrayEquals(
                        Arrays.copyOf(prompt, known.length), known, message + " " + chat.text);
                assertTrue(known.length <= before, message);
                assertTrue(known.length >= before - 2, message); // the last may be joined
                found += known.length;
            }
            assertTrue(found > trials, "tokens found: " + found);
        }
    }

    /** A request and the text that vLLM makes of it. */
    private static final class Chat {
        private static final List<String> ROLES = List.of("system", "user", "assistant");
        private static final List<String> WORDS =
                List.of("the cache", " router", "\n", " ", "é", "\uD83D\uDE00", "token.", "  a");
        private static final List<String> MEDIA =
                List.of(
                        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,\"}}",
                        "{\"type\":\"image_url\",\"image_url\":null,\"uuid\":\"u\"}",
                        "{\"type\":\"video_url\",\"video_url\":{\"url\":\"u\"}}",
                        "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"\"}}");

        private final ObjectMapper mapper = new ObjectMapper();
        private final ObjectNode request = mapper.createObjectNode();
        private final StringBuilder text = new StringBuilder();
        private final Random random;
        private final Kind kind;
        private boolean hasMedia;

        Chat(Random random, Kind kind) throws Exception {
            this.random = random;
            this.kind = kind;
            final ArrayNode messages = request.putArray("messages");
            final int count = 1 + random.nextInt(5);
            for (int i = 0; i < count; i++) {
                final ObjectNode message = messages.addObject();
                final String role = ROLES.get(random.nextInt(ROLES.size()));
                message.put("role", role);
                text.append('[').append(role).append("] ");
                if (random.nextBoolean()) {
                    final String words = words();
                    message.put("content", words);
                    text.append(words);
                } else {
                    parts(message.putArray("content"));
                }
                text.append('\n');
            }
            text.append("[assistant] ");
        }

        private String words() {
            return random.ints(1 + random.nextInt(8), 0, WORDS.size())
                    .mapToObj(WORDS::get)
                    .collect(Collectors.joining());
        }

        private void parts(ArrayNode parts) throws Exception {
            final List<String> ordered = new ArrayList<>();
            final List<String> texts = new ArrayList<>();
            final int count = 1 + random.nextInt(4);
            for (int i = 0; i < count; i++) {
                if (random.nextInt(3) == 0) {
                    parts.add(mapper.readTree(MEDIA.get(random.nextInt(MEDIA.size()))));
                    ordered.add(IMAGE);
                    hasMedia = true;
                } else {
                    final String words = words();
                    parts.addObject().put("type", "text").put("text", words);
                    ordered.add(words);
                    texts.add(words);
                }
            }
            final int media = ordered.size() - texts.size();
            text.append(
                    switch (kind) {
                        case IN_ORDER -> String.join("", ordered);
                        case FIRST -> IMAGE.repeat(media) + String.join("", texts);
                        case STRINGS -> strings(media, texts);
                    });
        }

        private static String strings(int media, List<String> texts) {
            final List<String> all = new ArrayList<>(Collections.nCopies(media, IMAGE));
            all.add(String.join("\n", texts));
            if (texts.isEmpty()) {
                all.removeLast();
            }
            return String.join("\n", all);
        }
    }
}
