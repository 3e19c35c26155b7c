package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.server.AnswerMemory;
import io.kvasir.gateway.testing.FakeEngine;

import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.content.ByteBufferContentSource;
import org.junit.jupiter.api.Test;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What the pump reports where it fails itself. */
class ResponsePumpTest {
    private final List<String> ends = new ArrayList<>();

    private static <T> T fake(Class<T> type, InvocationHandler handler) {
        return type.cast(
                Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    private Object listen(Object proxy, Method method, Object[] arguments) {
        return switch (method.getName()) {
            case "isWanted" -> true;
            case "cachedTokens" -> throw new IllegalStateException("of the test");
            default -> {
                ends.add(method.getName() + " " + arguments[0]);
                yield null;
            }
        };
    }

    @Test
    void aDefectIsNoClientThatLeft() {
        final HttpFields headers =
                HttpFields.build().put(HttpHeader.CONTENT_TYPE, "text/event-stream");
        final Response head =
                fake(
                        Response.class,
                        (_, method, _) -> method.getName().equals("getStatus") ? 200 : headers);
        final byte[] usage = FakeEngine.usageEvent(3, 2, 1).getBytes(StandardCharsets.UTF_8);
        new ResponsePump(
                        null,
                        new UpstreamAttempt.Answered(
                                head,
                                new ByteBufferContentSource(ByteBuffer.wrap(usage)),
                                () -> false),
                        InferenceRequest.Form.COMPLETION,
                        false,
                        null,
                        null,
                        new AnswerMemory(() -> 1),
                        fake(ResponsePump.Listener.class, this::listen))
                .readOn();
        assertEquals(List.of("defect java.lang.IllegalStateException: of the test"), ends);
    }
}
