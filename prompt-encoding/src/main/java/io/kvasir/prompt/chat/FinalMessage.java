package io.kvasir.prompt.chat;

import io.kvasir.prompt.jinja.WhiteSpace;
import io.kvasir.prompt.tokenizer.PromptException;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Leaves the last message of a chat open, so that the model continues it: a mark is put after its
 * text, and the rendered prompt ends where the mark came out.
 */
final class FinalMessage {
    private static final String MARK = "CONTINUE_FINAL_MESSAGE_TAG ";

    private FinalMessage() {}

    /** Marks the last message; returns its own text. The list is changed, its messages are not. */
    static String mark(List<Map<String, Object>> conversation) {
        final Map<String, Object> last = new LinkedHashMap<>(conversation.getLast());
        final Object content = last.get("content");
        final String text;
        if (content instanceof String whole) {
            text = whole;
            last.put("content", whole + MARK);
        } else {
            final List<Object> parts = new java.util.ArrayList<>((List<?>) content);
            int at = parts.size() - 1;
            while (at >= 0 && !(((Map<?, ?>) parts.get(at)).get("text") instanceof String)) {
                at--;
            }
            if (at < 0) {
                throw PromptException.invalid(
                        "continue_final_message: the final message has no text");
            }
            final Map<Object, Object> part = new LinkedHashMap<>((Map<?, ?>) parts.get(at));
            text = (String) part.get("text");
            part.put("text", text + MARK);
            parts.set(at, part);
            last.put("content", parts);
        }
        conversation.set(conversation.size() - 1, last);
        return text;
    }

    /** Cuts a rendered prompt at the mark. */
    static String cut(String rendered, String text) {
        final String bare = MARK.strip();
        final int at = rendered.lastIndexOf(bare);
        if (at < 0 || !rendered.contains(WhiteSpace.strip(text))) {
            throw PromptException.invalid(
                    "continue_final_message: the template leaves out or changes the final message");
        }
        final String kept = rendered.substring(0, at);
        return rendered.startsWith(MARK, at) ? kept : WhiteSpace.stripTrailing(kept);
    }
}
