package io.kvasir.bench.gateway;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * An engine that answers at once, always the same: a prefill's parameters to what asks for no
 * stream and one token, else a text or a stream of events. Speaks vLLM's way of handing over.
 */
final class StubEngine implements AutoCloseable {
    /** Output tokens of each answer, and events of each stream. */
    static final int TOKENS = 16;

    private static final byte[] PREFILL =
            json(
                    "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\""
                        + " a\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":512,"
                        + "\"completion_tokens\":1,\"total_tokens\":513},\"kv_transfer_params\":{"
                        + "\"do_remote_prefill\":true,\"do_remote_decode\":false,\"remote_block_ids\":[["
                        + "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
                        + "29,30,31,32]],\"remote_engine_id\":\"2f1c6a52-7f0f-4c8e-9a53-f8e0f6f7a0d1\","
                        + "\"remote_request_id\":\"cmpl-1-0\",\"remote_host\":\"127.0.0.1\","
                        + "\"remote_port\":5600,\"tp_size\":1}}");
    private static final byte[] TEXT =
            json(
                    "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\""
                            + " a".repeat(TOKENS)
                            + "\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":512,"
                            + "\"completion_tokens\":16,\"total_tokens\":528}}");
    private static final String TOKEN =
            """
            data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" a",\
            "finish_reason":null}]}

            """;
    private static final byte[] OTHER = json("{}");
    private static final byte[] STREAM = stream();

    private final ServerSocket server;

    StubEngine() throws IOException {
        server = new ServerSocket(0, 1024, InetAddress.getLoopbackAddress());
        Thread.ofVirtual().start(this::accept);
    }

    String url() {
        return "http://127.0.0.1:" + server.getLocalPort();
    }

    private void accept() {
        while (true) {
            try {
                final Socket client = server.accept();
                Thread.ofVirtual().start(() -> serve(client));
            } catch (IOException e) {
                return; // closed
            }
        }
    }

    private static void serve(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            final InputStream in = new BufferedInputStream(client.getInputStream());
            final OutputStream out = client.getOutputStream();
            for (HttpMessage request = HttpMessage.read(in);
                    request != null;
                    request = HttpMessage.read(in)) {
                out.write(answer(request));
            }
        } catch (IOException e) {
            // the gateway has closed it
        }
    }

    private static byte[] answer(HttpMessage request) {
        if (!request.start().startsWith("POST /v1/completions")) {
            return OTHER;
        }
        return request.body().contains("\"do_remote_decode\":true")
                ? PREFILL
                : request.body().contains("\"stream\":true") ? STREAM : TEXT;
    }

    private static byte[] json(String text) {
        return ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                        + text.length()
                        + "\r\n\r\n"
                        + text)
                .getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] stream() {
        final StringBuilder all =
                new StringBuilder(
                        String.join(
                                "\r\n",
                                "HTTP/1.1 200 OK",
                                "Content-Type: text/event-stream",
                                "Transfer-Encoding: chunked",
                                "",
                                ""));
        for (int i = 0; i < TOKENS; i++) {
            chunk(all, TOKEN);
        }
        chunk(
                all,
                "data: {\"id\":\"cmpl-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":512,"
                        + "\"completion_tokens\":16,\"total_tokens\":528}}\n\n");
        chunk(all, "data: [DONE]\n\n");
        return all.append("0\r\n\r\n").toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static void chunk(StringBuilder all, String event) {
        all.append(Integer.toHexString(event.length())).append("\r\n").append(event).append("\r\n");
    }

    @Override
    public void close() {
        try {
            server.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
