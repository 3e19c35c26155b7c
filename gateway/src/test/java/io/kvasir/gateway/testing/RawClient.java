package io.kvasir.gateway.testing;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;

/** A client on a bare socket: sends what it is told, reads what comes, leaves when it likes. */
public final class RawClient implements AutoCloseable {
    private final Socket socket;
    private final InputStream in;

    public RawClient(int port) throws IOException {
        this(new Socket(), port);
    }

    /** One whose system takes as little as it can of what the client does not read. */
    public static RawClient withLittleRoom(int port) throws IOException {
        final Socket socket = new Socket();
        socket.setReceiveBufferSize(4096);
        return new RawClient(socket, port);
    }

    private RawClient(Socket socket, int port) throws IOException {
        this.socket = socket;
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(60_000);
        in = new BufferedInputStream(socket.getInputStream());
    }

    public RawClient post(String path, String body, String... headers) throws IOException {
        final StringBuilder head = new StringBuilder();
        head.append("POST ").append(path).append(" HTTP/1.1\r\nHost: gateway\r\n");
        head.append("Content-Type: application/json\r\n");
        for (String header : headers) {
            head.append(header).append("\r\n");
        }
        final byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        head.append("Content-Length: ").append(bytes.length).append("\r\n\r\n");
        send(head + body);
        return this;
    }

    public RawClient send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
        socket.getOutputStream().flush();
        return this;
    }

    /** Reads until the text so far ends with the part, of a character at least. */
    public String readUntil(String part) throws IOException {
        final ByteArrayOutputStream read = new ByteArrayOutputStream();
        final byte[] bytes = part.getBytes(StandardCharsets.UTF_8);
        final byte last = bytes[bytes.length - 1];
        int b;
        do {
            try {
                b = in.read();
            } catch (SocketTimeoutException e) {
                throw new IOException("'" + part + "' did not come after: " + read, e);
            }
            if (b < 0) {
                throw new IOException("ended before '" + part + "' came: " + read);
            }
            read.write(b);
        } while ((byte) b != last || !read.toString(StandardCharsets.UTF_8).endsWith(part));
        return read.toString(StandardCharsets.UTF_8);
    }

    /** Reads, keeping little, until the part has come; false if the connection ends before. */
    public boolean drainUntil(String part) throws IOException {
        final byte[] buffer = new byte[65_536];
        String end = "";
        for (int n = 0; n >= 0; n = in.read(buffer)) {
            end += new String(buffer, 0, n, StandardCharsets.UTF_8);
            if (end.contains(part)) {
                return true;
            }
            end = end.substring(Math.max(0, end.length() - part.length()));
        }
        return false;
    }

    /** Reads to the end of the connection. */
    public String readAll() throws IOException {
        return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }

    /** Says that nothing more will be sent. */
    public RawClient halfClose() throws IOException {
        socket.shutdownOutput();
        return this;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /** Leaves with a reset instead of a goodbye. */
    public void reset() throws IOException {
        socket.setSoLinger(true, 0);
        socket.close();
    }
}
