package io.kvasir.gateway.proxy;

import io.kvasir.gateway.openai.ChatAnswer;
import io.kvasir.gateway.openai.ChatStream;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.SseStream;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.server.AnswerMemory;
import io.kvasir.gateway.server.Gzip;
import io.kvasir.gateway.server.ResponseCoding;
import io.kvasir.gateway.upstream.UpstreamFault;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.IteratingCallback;
import org.eclipse.jetty.util.thread.Invocable;

import java.io.EOFException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;

/**
 * Moves one answer from a worker to the client, one write at a time: what the client does not take
 * is not asked of the worker. Runs on I/O threads and never blocks.
 *
 * <p>The head is sent with the first bytes. An event stream goes in whole events; another answer is
 * held back up to a limit, so that it can still be replaced by a further attempt's. Where there is
 * no memory to hold more of it, it goes as it comes, like one beyond that limit.
 */
final class ResponsePump extends IteratingCallback {
    /** What the exchange has to do with the bytes. Called by one thread at a time. */
    interface Listener {
        /** Whether the client still waits for this answer. */
        boolean isWanted();

        /**
         * The head is about to be sent: from now on the client gets this answer and no other one.
         *
         * @return false where it is not wanted any more
         */
        boolean claim();

        /** The head is being made. */
        void committing(HttpFields.Mutable headers);

        /** The first output token of a stream has come. */
        void firstToken();

        /**
         * Output tokens of a stream, those before included.
         *
         * @param events that carried them
         */
        void outputTokens(int total, int events);

        /**
         * What the answer is to state of cached tokens; {@link UsageReader#UNKNOWN} leaves what it
         * states.
         */
        int cachedTokens();

        /**
         * All bytes have come; the last of them are about to be written.
         *
         * @param status of the answer, or the one that its error event stands for
         * @param last how many bytes that are, before they are compressed
         */
        void complete(int status, UsageReader usage, int last);

        /**
         * The stream has an error in place of its first event.
         *
         * @return whether another answer is had instead; else this one continues
         */
        boolean replaced(UpstreamFault fault, String cause);

        /** The stream has an error after events that the client has; it continues as it came. */
        void faulted(UpstreamFault fault, String cause);

        /**
         * The answer broke off.
         *
         * @return what to write as the last event of a stream; null to write nothing more
         */
        byte[] broken(UpstreamFault fault, String cause, Progress progress);

        /** The answer is complete, but not at its end: what is left says nothing. */
        void endFollows(Content.Source rest);

        /** A write is under way, or has ended. */
        void writing(boolean underWay);

        /** The last byte is written. */
        void delivered();

        /** The client cannot be written to. */
        void clientFailed(Throwable cause);

        /** The answer cannot be passed on, by a defect. */
        void defect(Throwable cause);
    }

    /** How much of an answer the client has. */
    enum Progress {
        /** Nothing: it can get another answer. */
        NOTHING,
        /** Whole events: an event can follow. */
        EVENTS,
        /** A part of a body that nothing can follow. */
        PART
    }

    private static final int HELD_ANSWER_BYTES = 4 << 20;
    private static final int HELD_CHAT_BYTES = 32 << 20; // of one that is made of a completion
    private static final int WRITE_BYTES = 16 << 10; // of events at once
    private static final byte[] COMMENT = {':', '\n', '\n'};

    private final Response response;
    private final int status;
    private final HttpFields headers;
    private final Content.Source source;
    private final BooleanSupplier isCut; // asked at its end
    private final boolean readable; // not compressed by the engine
    private boolean errorSeen;
    private final ResponseCoding coding;
    private final Listener listener;
    private final Runnable onDemand = Invocable.from(InvocationType.NON_BLOCKING, this::readOn);
    private final SseStream events;
    private final ChatAnswer chat; // null where the answer goes as it came
    private final ChatStream chatEvents; // null where it is none, or goes as it came
    private final UsageReader usage;
    private final HeldAnswer held; // null for a stream of events
    private boolean holds; // else the rest goes as it comes
    private Content.Chunk passing;
    private Throwable failure; // of the worker's answer; what came before it is written first
    private Gzip gzip; // null where the answer is sent as it is
    private boolean committed;
    private boolean upstreamEnded;
    private boolean firstToken;
    private boolean lastWrite;
    private volatile boolean demanded;
    private volatile boolean commentWanted;

    /**
     * @param response the client's
     * @param form of the API whose answer it is
     * @param dropUsage leave out the event that carries usage and no choice
     * @param chatOrNull makes a chat's answer of the worker's; null for one that goes as it comes
     * @param coding which answers are compressed; never one that the worker has encoded
     * @param memory of answers that are held back
     */
    ResponsePump(
            Response response,
            UpstreamAttempt.Answered answer,
            InferenceRequest.Form form,
            boolean dropUsage,
            ChatAnswer chatOrNull,
            ResponseCoding coding,
            AnswerMemory memory,
            Listener listener) {
        this.response = response;
        this.status = answer.head().getStatus();
        this.headers = answer.head().getHeaders();
        this.source = answer.content();
        this.isCut = answer.isCut();
        this.coding = coding;
        this.listener = listener;
        final boolean isEvents =
                status == 200 && SseStream.isType(headers.get(HttpHeader.CONTENT_TYPE));
        this.readable = !headers.contains(HttpHeader.CONTENT_ENCODING);
        this.events =
                isEvents && readable
                        ? new SseStream(form, dropUsage, listener::cachedTokens)
                        : null;
        this.chat = status == 200 ? chatOrNull : null;
        this.chatEvents = chat != null && events != null ? new ChatStream(chat) : null;
        if (chat != null && !readable) {
            failure = new ProtocolException("the answer is compressed, which was not asked for");
        }
        this.usage = events != null ? events.usage() : new UsageReader();
        this.held =
                isEvents
                        ? null
                        : new HeldAnswer(memory, headers.getLongField(HttpHeader.CONTENT_LENGTH));
        this.holds = held != null;
    }

    @Override
    public InvocationType getInvocationType() {
        return InvocationType.NON_BLOCKING;
    }

    /** Begins, and continues when there is something to read: bytes, the end or a failure. */
    void readOn() {
        demanded = false;
        iterate();
    }

    /** Writes a comment into an event stream that has begun; does nothing to another answer. */
    void writeComment() {
        commentWanted = events != null;
        iterate();
    }

    /** What a defect throws here is not to count as a client that left. */
    @Override
    protected Action process() {
        try {
            return pass();
        } catch (RuntimeException | Error e) {
            listener.defect(e);
            return Action.SUCCEEDED;
        }
    }

    private Action pass() {
        while (true) {
            if (lastWrite || !listener.isWanted()) {
                return Action.SUCCEEDED;
            }
            if (commentWanted && committed) {
                commentWanted = false;
                return write(ByteBuffer.wrap(COMMENT));
            }
            if (demanded) {
                return Action.IDLE;
            }
            if (failure != null && !isOver()) {
                return broken(failure);
            }
            if (events != null) {
                return passEvents();
            }
            final Content.Chunk chunk = source.read();
            if (chunk == null) {
                demand();
                return Action.IDLE;
            }
            if (Content.Chunk.isFailure(chunk)) {
                failure = chunk.getFailure();
                continue;
            }
            final Action action = takeBytes(chunk);
            if (action != null) {
                return action;
            }
        }
    }

    /** Whether all of it has come: whatever happens to the connection then, the client has it. */
    private boolean isDone() {
        return events != null && events.sawDone();
    }

    /** The same, or the worker has said why the rest never comes: no second error follows that. */
    private boolean isOver() {
        return isDone() || (events != null && events.sawError());
    }

    private void demand() {
        demanded = true;
        source.demand(onDemand);
    }

    /** Writes what has come of an event stream: however many chunks it came in, in one write. */
    private Action passEvents() {
        final boolean awaitsMore = readEvents();
        if (upstreamEnded || failure != null) {
            events.ended();
        }
        countTokens();
        if (events.sawError() && !errorSeen && isReplaced(events.errorStatus())) {
            return Action.SUCCEEDED;
        }
        if (isDone() || (events.sawError() && (upstreamEnded || failure != null))) {
            // a stream keeps its form, chunks, however fast it ended
            return committed ? completeEvents() : write(events.takeReady());
        }
        if (awaitsMore) {
            demand(); // what comes meanwhile is read after the write
        }
        if (events.readyBytes() > 0) {
            return write(events.takeReady());
        }
        if (upstreamEnded) {
            return broken(
                    UpstreamFault.PROTOCOL, "the event stream ended without " + events.lastEvent());
        }
        return failure == null ? Action.IDLE : broken(failure);
    }

    private Action completeEvents() {
        if (upstreamEnded) {
            return complete(events.takeAll());
        }
        if (failure == null) {
            listener.endFollows(source);
        }
        return complete(events.takeReady());
    }

    private boolean isReplaced(int errorStatus) {
        errorSeen = true;
        final UpstreamFault fault = UpstreamFault.ofStatus(errorStatus);
        if (fault == null) {
            return false;
        }
        final String cause = "error event " + errorStatus;
        if (!committed) {
            return listener.replaced(fault, cause);
        }
        listener.faulted(fault, cause);
        return false;
    }

    /**
     * Reads what is there, up to a limit.
     *
     * @return whether more is to come, but is not there yet
     */
    private boolean readEvents() {
        while (!upstreamEnded && failure == null && events.readyBytes() < WRITE_BYTES) {
            final Content.Chunk chunk = source.read();
            if (chunk == null) {
                return true;
            }
            if (Content.Chunk.isFailure(chunk)) {
                failure = chunk.getFailure();
                return false;
            }
            upstreamEnded = chunk.isLast();
            accept(chunk.getByteBuffer());
            chunk.release();
        }
        return false;
    }

    private void accept(ByteBuffer bytes) {
        if (chatEvents == null) {
            events.accept(bytes);
        } else {
            events.accept(chatEvents.convert(bytes));
            failure = chatEvents.fault();
        }
    }

    private void countTokens() {
        if (!events.sawFirstToken()) {
            return;
        }
        if (!firstToken) {
            firstToken = true;
            listener.firstToken();
        }
        listener.outputTokens(events.outputTokens(), events.outputEvents());
    }

    /** A part of any other answer; null when there is nothing to write yet. */
    private Action takeBytes(Content.Chunk chunk) {
        final boolean last = chunk.isLast();
        if (last && isCut.getAsBoolean()) {
            chunk.release();
            return broken(new EOFException("a reset ended the answer"));
        }
        if (!holds) {
            if (last) {
                final ByteBuffer rest = ByteBuffer.wrap(BufferUtil.toArray(chunk.getByteBuffer()));
                chunk.release();
                return complete(rest);
            }
            passing = chunk;
            return write(chunk.getByteBuffer());
        }
        final boolean hasMemory = held.add(chunk.getByteBuffer());
        chunk.release();
        if (chat != null) {
            return takeCompletion(last, hasMemory);
        }
        if (last) {
            return completeHeld();
        }
        if (!hasMemory || held.length() > HELD_ANSWER_BYTES) {
            holds = false;
            return write(held.takeAll());
        }
        return null;
    }

    /** A part of a completion that a chat's answer is made of, which takes all of it. */
    private Action takeCompletion(boolean last, boolean hasMemory) {
        if (!hasMemory) {
            return broken(UpstreamFault.MEMORY, "no memory for more of a completion to turn");
        }
        if (held.length() > HELD_CHAT_BYTES) {
            return broken(
                    new ProtocolException(
                            "a completion of more than " + HELD_CHAT_BYTES + " bytes"));
        }
        return last ? completeHeld() : null;
    }

    private Action completeHeld() {
        int length = held.length();
        byte[] whole = held.takeArray();
        if (chat != null) {
            try {
                whole = chat.whole(whole, length);
            } catch (ProtocolException e) {
                return broken(e);
            }
            length = whole.length;
        }
        if (usage.read(whole, 0, length) && status == 200 && readable) {
            usage.restate(whole, listener.cachedTokens());
        }
        return complete(ByteBuffer.wrap(whole, 0, length));
    }

    private Action write(ByteBuffer bytes) {
        final boolean first = !committed;
        if (!commit(bytes.remaining())) {
            return Action.SUCCEEDED;
        }
        if (first) {
            ProxyHeaders.putChunked(response);
        }
        listener.writing(true);
        response.write(false, encoded(bytes, false), this);
        return Action.SCHEDULED;
    }

    private ByteBuffer encoded(ByteBuffer bytes, boolean last) {
        return gzip == null ? bytes : gzip.encode(bytes, last);
    }

    private Action complete(ByteBuffer bytes) {
        if (!commit(bytes.remaining())) {
            return Action.SUCCEEDED;
        }
        listener.complete(errorSeen ? events.errorStatus() : status, usage, bytes.remaining());
        return writeLast(bytes);
    }

    private Action writeLast(ByteBuffer bytes) {
        lastWrite = true;
        listener.writing(true);
        response.write(true, encoded(bytes, true), this);
        return Action.SCHEDULED;
    }

    /**
     * @param bytes least length of the answer
     * @return false where the answer is not wanted any more
     */
    private boolean commit(int bytes) {
        if (committed) {
            return true;
        }
        if (!listener.claim()) {
            return false;
        }
        committed = true;
        response.setStatus(status);
        ProxyHeaders.toClient(headers, events != null || chat != null, response.getHeaders());
        gzip =
                events != null
                        ? coding.ofEvents(response.getRequest(), response.getHeaders())
                        : coding.ofBytes(bytes, response.getRequest(), response.getHeaders());
        listener.committing(response.getHeaders());
        return true;
    }

    private Action broken(Throwable cause) {
        return broken(UpstreamFault.of(cause), UpstreamFault.describe(cause));
    }

    private Action broken(UpstreamFault fault, String cause) {
        final byte[] last = listener.broken(fault, cause, progress());
        return last == null ? Action.SUCCEEDED : writeLast(ByteBuffer.wrap(last));
    }

    private Progress progress() {
        return !committed ? Progress.NOTHING : events != null ? Progress.EVENTS : Progress.PART;
    }

    @Override
    protected void onSuccess() {
        listener.writing(false);
        release();
    }

    @Override
    protected void onCompleteSuccess() {
        closeGzip();
        release();
        if (lastWrite) {
            listener.delivered();
        }
    }

    @Override
    protected void onCompleteFailure(Throwable cause) {
        closeGzip();
        release();
        listener.clientFailed(cause);
    }

    private void closeGzip() {
        if (gzip != null) {
            gzip.close();
        }
    }

    /** What was written, or never will be, is in memory no more. */
    private void release() {
        if (held != null) {
            held.free();
        }
        if (passing != null) {
            passing.release();
            passing = null;
        }
    }
}
