package io.kvasir.cli;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** An HTTP server that answers with whatever bytes a test says, or not at all. */
public final class RawServer implements AutoCloseable {
    private static final String CLOSE = "connection: close";
    private static final Pattern LENGTH = Pattern.compile("(?i)content-length: *(\\d+)");

    /** What it answers. */
    @FunctionalInterface
    public interface Answers {
        /**
         * The answer to a request, from its status line on.
         *
         * @param line method and path
         * @return null for none; the connection stays open after that, and after one that does not
         *     say that it closes it
         */
        byte[] answer(String line, byte[] body) throws Exception;
    }

    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final ServerSocket listening;
    private final Answers answers;

    public RawServer(Answers answers) throws IOException {
        this.answers = answers;
        listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        threads.execute(this::accept);
    }

    private void accept() {
        try {
            while (true) {
                final Socket socket = listening.accept();
                threads.execute(() -> serve(socket));
            }
        } catch (IOException e) {
            closed.countDown();
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            final InputStream in = socket.getInputStream();
            final ByteArrayOutputStream head = new ByteArrayOutputStream();
            while (!head.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
                final int next = in.read();
                if (next < 0) {
                    return;
                }
                head.write(next);
            }
            final String text = head.toString(StandardCharsets.ISO_8859_1);
            final Matcher length = LENGTH.matcher(text);
            final byte[] body =
                    in.readNBytes(length.find() ? Integer.parseInt(length.group(1)) : 0);
            final byte[] answer = answers.answer(text.substring(0, text.indexOf(" HTTP/")), body);
            if (answer == null) {
                closed.await();
                return;
            }
            socket.getOutputStream().write(answer);
            if (!new String(answer, StandardCharsets.ISO_8859_1).contains(CLOSE)) {
                closed.await();
            }
        } catch (Exception e) {
            // the client has gone, as some of its limits want
        }
    }

    /** An answer that closes the connection. */
    public static byte[] answer(int status, String headers, byte[] body) {
        final ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes(
                ("HTTP/1.1 "
                                + status
                                + " x\r\n"
                                + headers
                                + "content-length: "
                                + body.length
                                + "\r\n"
                                + CLOSE
                                + "\r\n\r\n")
                        .getBytes(StandardCharsets.ISO_8859_1));
        all.writeBytes(body);
        return all.toByteArray();
    }

    /** The answer of another server, with further headers. */
    public static byte[] forwarded(URI to, String headers, String line, byte[] body)
            throws IOException, InterruptedException {
        try (HttpClient http = HttpClient.newHttpClient()) {
            final String[] words = line.split(" ", 2);
            final HttpResponse<byte[]> answer =
                    http.send(
                            HttpRequest.newBuilder(to.resolve(words[1]))
                                    .method(words[0], HttpRequest.BodyPublishers.ofByteArray(body))
                                    .build(),
                            HttpResponse.BodyHandlers.ofByteArray());
            return answer(answer.statusCode(), headers, answer.body());
        }
    }

    public String url() {
        return "http://127.0.0.1:" + listening.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        listening.close();
        closed.countDown();
        threads.shutdownNow();
    }
}
