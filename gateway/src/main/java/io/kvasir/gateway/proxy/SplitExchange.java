package io.kvasir.gateway.proxy;

import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.routing.DecisionRecord;
import io.kvasir.gateway.routing.RequestPart;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.upstream.FaultAttribution;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.MalformedJsonException;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.router.Worker;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.LegFailure;
import io.kvasir.router.disagg.PrefillBlocks;
import io.kvasir.router.disagg.SplitAlternatives;
import io.kvasir.router.disagg.SplitChoice;
import io.kvasir.router.disagg.SplitEvent;
import io.kvasir.router.disagg.SplitFlow;
import io.kvasir.router.disagg.SplitLegs;
import io.kvasir.router.disagg.SplitPolicy;
import io.kvasir.router.disagg.TransferCosts;
import io.kvasir.router.policy.CandidateWorker;

import org.eclipse.jetty.server.Request;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The prefill side of one exchange's request, and the flow that joins it to the decode side, which
 * is the exchange's own. One method at a time, by the flow.
 */
final class SplitExchange implements SplitLegs {
    /** The side that answers the client. */
    interface DecodeSide {
        /**
         * Books a worker and reports it to the flow, or fails.
         *
         * @param number the flow's of this decode
         */
        void chooseDecode(int number);

        /** Sends to the booked worker. */
        void sendDecode();

        /** Ends what is under way, unless the client has a part of its answer. */
        void abortDecode();

        /** Answers with an error, unless the client has a part of an answer. */
        void report(LegFailure failure);

        /** The same, with the error that the prefill worker finds in the request. */
        void refuse(ApiException refusal);

        /** Answers with what a prefill worker has answered. */
        void answerWith(CompleteAnswer answer, WorkerReservations.Booking prefill);
    }

    /** One prefill. */
    private static final class Prefill {
        private final PrefillLeg leg;
        private final LegBodies bodies;
        private final ByteBuffer body;
        private final PrefillBlocks blocks = new PrefillBlocks();
        private final Rendezvous rendezvous; // null where the answer is waited for
        private volatile long answeredNs; // 0 before
        private volatile VerbatimJson answer;
        private volatile String verdict; // of the answer, which is judged once
        private volatile CompleteAnswer complete; // null where a decode worker goes on

        Prefill(PrefillLeg leg, LegBodies bodies, ByteBuffer body, Rendezvous rendezvous) {
            this.leg = leg;
            this.bodies = bodies;
            this.body = body;
            this.rendezvous = rendezvous;
        }

        HandoffProtocol protocol() {
            return leg.booking().upstream().handoff();
        }
    }

    /**
     * A prefill whose client has left may end by itself for so long, or its timeout if that is
     * less: its answer says which blocks are to be freed, and most prompts take less. One that
     * takes longer is aborted; none has this time where the gateway ends.
     */
    private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(2);

    private static final String NO_PAIR = "no_pair";
    private static final String NO_BLOCKS = "no_blocks"; // an answer that names none
    private static final String MALFORMED = "malformed"; // one that cannot be read

    private final ProxyContext context;
    private final ProxyRequest proxied;
    private final Request request;
    private final DecodeSide decode;
    private final SplitFlow.Rules rules;
    private final RetryPolicy.Rules retryRules;
    private final SplitFlow flow;
    private final FaultAttribution faults;
    private final Prefill[] prefills; // by attempt, from 1; null where no worker was found
    private volatile Prefill last; // null before the first prefill worker is chosen
    private final List<Worker> failed = new ArrayList<>(1);
    private volatile ByteBuffer decodeBody;
    private volatile ApiException refusal; // null as long as no prefill worker refuses
    private volatile MalformedJsonException malformed; // null where the body can be edited
    private final AtomicReference<WorkerReservations.Booking> admitted =
            new AtomicReference<>(); // a prefill worker that was waited for and is not used yet
    private volatile boolean over;
    private volatile boolean cut;

    SplitExchange(
            ProxyContext context,
            ProxyRequest proxied,
            Request request,
            DecodeSide decode,
            SplitFlow.Rules rules,
            RetryPolicy.Rules retryRules) {
        this.context = context;
        this.proxied = proxied;
        this.request = request;
        this.decode = decode;
        this.faults = new FaultAttribution(proxied.body());
        this.rules = rules;
        this.retryRules = retryRules;
        this.prefills = new Prefill[rules.prefills() + 1];
        this.flow = new SplitFlow(rules, this, context.split().deadlines());
    }

    SplitFlow flow() {
        return flow;
    }

    /** Whether the request waits for a prefill worker before the flow begins. */
    boolean waitsForPrefill() {
        return context.reservations().waits(RequestPart.PREFILL) && wholeFor() == null;
    }

    /** Begins with a prefill worker that was waited for. */
    void startWith(WorkerReservations.Booking booking) {
        admitted.set(booking);
        if (over) { // read after it is set: one of the two gives it up
            giveUpAdmitted();
        } else {
            flow.start();
        }
    }

    private void giveUpAdmitted() {
        final WorkerReservations.Booking unused = admitted.getAndSet(null);
        if (unused != null) {
            giveUp(unused, "abandoned");
        }
    }

    /**
     * The client is about to get the first bytes of a decode worker's answer.
     *
     * @param number the flow's of this decode
     */
    void decodeStarted(int number, WorkerReservations.Booking booking) {
        if (flow.isSplit()) {
            handedOver(last, booking);
        }
        flow.decodeStarted(number);
    }

    /** One that meets its decode worker may answer after it: then nothing is known of the time. */
    private void handedOver(Prefill from, WorkerReservations.Booking to) {
        final WorkerReservations.Booking prefill = from.leg.booking();
        context.metrics().splits().fetched(to.upstream(), to.decision().tokensToFetch());
        if (from.answeredNs == 0) {
            return;
        }
        final long ns = System.nanoTime() - from.answeredNs;
        context.metrics().splits().handedOver(to.upstream(), ns);
        proxied.record().trace().step("handoff", ns);
        context.split()
                .policy()
                .learnTransfer(
                        distance(prefill.upstream(), to.upstream()),
                        prefill.decision().tokens(),
                        ns / 1e9);
    }

    /** The first token of a stream that one worker does all of, so long after it was sent. */
    void wholeStarted(WorkerReservations.Booking booking, long ns) {
        context.split()
                .policy()
                .learnLocal(
                        booking.upstream().pace(), booking.decision().tokensToCompute(), ns / 1e9);
    }

    /** The client's answer is complete and good: a prefill worker that failed was at fault. */
    void answered() {
        faults.answered();
    }

    /**
     * Gives prefills no time to end by themselves from now on, because the gateway ends. Called by
     * any thread, before the exchange is ended.
     */
    void cut() {
        cut = true;
    }

    /** The exchange has ended; means nothing more to a flow that is done. */
    void ended() {
        faults.ended();
        over = true;
        flow.abandoned();
        giveUpAdmitted();
    }

    /** What the decode side sends: as long as it is split, with what hands the blocks over. */
    ByteBuffer mainBody() {
        return flow.isSplit() ? decodeBody : proxied.body();
    }

    /** Whether a prefill worker was chosen. */
    boolean hasPrefill() {
        return last != null;
    }

    /** How the prefill worker was chosen last, and what became of it. */
    DecisionRecord prefillDecision() {
        return last.leg.booking().decision();
    }

    /** What the decode side books a worker for. */
    RequestPart decodePart() {
        return flow.isSplit()
                ? decodeAfter(prefills[flow.attempt()].leg.booking().upstream())
                : whole();
    }

    /** A request that one worker does all of. */
    private RequestPart whole() {
        final SplitPolicy policy = context.split().policy();
        return policy.weighsWorkers()
                ? RequestPart.whole(
                        worker ->
                                policy.wholeBlocks(
                                        pace(worker.worker()),
                                        worker.prefillBlocks(),
                                        worker.requestBlocks() - worker.overlapBlocks(),
                                        worker.activeRequests(),
                                        worker.decodeBlocks()))
                : RequestPart.WHOLE;
    }

    /** The error of a request that no registered worker can ever serve; null for any other. */
    ApiException neverOrNull() {
        final MalformedJsonException wrong = malformed;
        final String member = wrong == null ? memberForWhole() : wrong.member().orElse(null);
        if ((member == null && wrong == null) || canAnswerAlone()) {
            return null;
        }
        return ApiException.needsWholeWorker(
                member, wrong == null ? "" : ": " + wrong.getMessage());
    }

    /** By which the request cannot be split between any of the registered workers. */
    private String memberForWhole() {
        final InferenceRequest asked = proxied.inference();
        if (asked.wholeMember() != null) {
            return asked.wholeMember();
        }
        if (asked.namesBlocks != null) {
            return asked.namesBlocks;
        }
        if (asked.samplesIn != null) {
            return asked.samplesIn;
        }
        return asked.prompts() > 1 && !context.registry().hasPair(HandoffProtocol.SGLANG)
                ? asked.batchIn
                : null;
    }

    RequestPart prefillPart() {
        final SplitPolicy policy = context.split().policy();
        return policy.weighsWorkers()
                ? RequestPart.prefill(
                        worker ->
                                policy.prefillBlocks(pace(worker.worker()), worker.prefillBlocks()))
                : RequestPart.PREFILL;
    }

    private double pace(CandidateWorker worker) {
        final Upstream upstream = context.registry().of(worker);
        return upstream == null ? 1 : upstream.pace().factor(); // removed in this moment
    }

    private RequestPart decodeAfter(Upstream prefill) {
        final TransferCosts costs = context.split().transfers();
        return RequestPart.decodeAfter(
                prefill.handoff(),
                costs.any()
                        ? candidate ->
                                costs.blocks(
                                        distance(
                                                prefill, context.registry().of(candidate.worker())),
                                        candidate.requestBlocks() - candidate.overlapBlocks())
                        : null);
    }

    /** How far apart two workers are; one that has been removed is as far as can be. */
    private int distance(Upstream prefill, Upstream decode) {
        final TransferCosts costs = context.split().transfers();
        return decode == null
                ? costs.distances() - 1
                : costs.distance(prefill.labels(), decode.labels());
    }

    @Override
    public void choosePrefill(int attempt) {
        final WorkerReservations.Booking waitedFor = admitted.getAndSet(null);
        final String whole = wholeFor();
        if (whole != null && waitedFor != null) {
            keepWhole(attempt, waitedFor, whole);
            return;
        }
        if (whole != null) {
            context.metrics().splits().notSplit(whole);
            flow.notSplit(attempt);
            return;
        }
        final WorkerReservations.Booking booking;
        try {
            booking = waitedFor == null ? reservePrefill(attempt, List.of()) : waitedFor;
        } catch (ApiException e) {
            flow.prefillFailed(attempt, "no_worker");
            return;
        }
        begin(attempt, booking);
    }

    /**
     * Books another worker than those that were tried, or one of them where there is no other.
     *
     * @param apart workers that are none for it
     */
    private WorkerReservations.Booking reservePrefill(int attempt, List<Worker> apart)
            throws ApiException {
        if (!failed.isEmpty()) {
            try {
                final List<Worker> excluded = new ArrayList<>(apart);
                excluded.addAll(failed);
                return reserve(attempt, excluded);
            } catch (ApiException e) {
                // none is left: the failure need not have been the worker's
            }
        }
        return reserve(attempt, apart);
    }

    private WorkerReservations.Booking reserve(int attempt, List<Worker> excluded)
            throws ApiException {
        return context.reservations()
                .reserve(
                        prefillPart(),
                        proxied.prompt(),
                        excluded,
                        proxied.requestId(),
                        proxied.inference().route.label,
                        attempt);
    }

    /** Why one worker is to do all of it; null if it may be split. */
    private String wholeFor() {
        if (proxied.inference().wholeMember() != null) {
            return proxied.inference().wholeMember();
        }
        if (proxied.inference().namesBlocks != null) {
            return "names_blocks"; // a trusted caller has split it itself
        }
        if (!context.split().policy().splits()) {
            return "never";
        }
        if (!context.registry().canSplit()) {
            return NO_PAIR;
        }
        return proxied.inference().sequences() > proxied.inference().prompts() ? "samples" : null;
    }

    private void begin(int attempt, WorkerReservations.Booking first) {
        WorkerReservations.Booking booking = first;
        String whole = wholeFor(booking);
        final List<Worker> apart = new ArrayList<>(0);
        while (NO_PAIR.equals(whole) && isApart(booking)) {
            apart.addAll(booking.upstream().ranks());
            final WorkerReservations.Booking other = reserveOtherOrNull(attempt, apart);
            if (other == null) {
                break;
            }
            giveUp(booking, "superseded");
            booking = other;
            whole = wholeFor(booking);
        }
        if (whole != null) {
            keepWhole(attempt, booking, whole);
            return;
        }
        final HandoffProtocol how = booking.upstream().handoff();
        final Rendezvous rendezvous = meets(booking) ? meeting(booking) : null;
        final LegBodies bodies;
        final VerbatimJson body;
        try {
            bodies = new LegBodies(how, VerbatimJson.parse(bytes(proxied.body())));
            body = rendezvous == null ? bodies.prefill() : bodies.meeting(rendezvous);
        } catch (MalformedJsonException e) {
            malformed = e;
            keepWhole(attempt, booking, MALFORMED);
            return;
        }
        context.metrics().splits().split(how);
        last =
                new Prefill(
                        new PrefillLeg(
                                context,
                                proxied,
                                booking,
                                faults,
                                retryRules,
                                new Outcome(attempt)),
                        bodies,
                        ByteBuffer.wrap(body.bytes()),
                        rendezvous);
        prefills[attempt] = last;
        flow.prefillChosen(
                attempt, rendezvous == null ? SplitFlow.Path.COMPLETED : SplitFlow.Path.RENDEZVOUS);
    }

    private static boolean meets(WorkerReservations.Booking booking) {
        return booking.upstream().handoff() == HandoffProtocol.SGLANG;
    }

    /**
     * Whether the request needs a pair and it is only by the distance that this prefill worker has
     * none: another one may have.
     */
    private boolean isApart(WorkerReservations.Booking booking) {
        return !fallsBackAlone()
                && decodeWorkerOrNull(RequestPart.decodeAfter(booking.upstream().handoff()))
                        != null;
    }

    private WorkerReservations.Booking reserveOtherOrNull(int attempt, List<Worker> apart) {
        try {
            return reservePrefill(attempt, apart);
        } catch (ApiException e) {
            return null;
        }
    }

    /** Gives a booked prefill worker up, as one worker is to do all of the request. */
    private void keepWhole(int attempt, WorkerReservations.Booking booking, String reason) {
        giveUp(booking, "not_split");
        context.metrics().splits().notSplit(reason);
        flow.notSplit(attempt);
    }

    private static void giveUp(WorkerReservations.Booking booking, String outcome) {
        booking.lease().close();
        booking.decision().end(outcome, 0, 0);
    }

    /**
     * Why one worker is to do all of it, now that a prefill worker is known; null if it is split.
     */
    private String wholeFor(WorkerReservations.Booking booking) {
        if (!meets(booking) && proxied.inference().prompts() > 1) {
            return "batch"; // an answer names the blocks of one
        }
        if (!context.split().transfers().any()) {
            return wholeFor(booking, 0);
        }
        final Worker decodeWorker = decodeWorkerOrNull(decodeAfter(booking.upstream()));
        return decodeWorker == null
                ? NO_PAIR // such as none that may fetch from there
                : wholeFor(
                        booking, distance(booking.upstream(), context.registry().of(decodeWorker)));
    }

    /** That would be chosen; null if none can be. */
    private Worker decodeWorkerOrNull(RequestPart part) {
        try {
            return context.reservations().outlook(part, proxied.prompt(), List.of()).worker();
        } catch (ApiException e) {
            return null;
        }
    }

    /** Why the policy has one worker do all of it, where it asks; null if it is split. */
    private String wholeFor(WorkerReservations.Booking booking, int distance) {
        final SplitPolicy policy = context.split().policy();
        if (!policy.isConditional() || last != null) {
            return null;
        }
        final WorkerReservations.Outlook local;
        try {
            local = context.reservations().outlook(whole(), proxied.prompt(), List.of());
        } catch (ApiException e) {
            return null; // no worker can do all of it
        }
        final DecisionRecord remote = booking.decision();
        final int remoteUncached = remote.tokens() - remote.predictedCachedTokens();
        final SplitChoice choice =
                policy.choose(
                        new SplitAlternatives(
                                remote.tokens(),
                                local.uncachedTokens(),
                                local.tokensToCompute() - local.uncachedTokens(),
                                local.activeRequests(),
                                pace(local.worker()),
                                remoteUncached,
                                remote.tokensToCompute() - remoteUncached,
                                booking.upstream().pace().factor(),
                                distance));
        remote.split(choice);
        return choice.split() ? null : choice.reason();
    }

    private Rendezvous meeting(WorkerReservations.Booking booking) {
        return Rendezvous.draw(
                booking.upstream().bootstrap(),
                booking.decision().dpRank(),
                booking.upstream().ranks().size(),
                proxied.inference().prompts(),
                ThreadLocalRandom.current());
    }

    private static byte[] bytes(ByteBuffer buffer) {
        final byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    @Override
    public void sendPrefill(int attempt) {
        send(prefills[attempt]);
    }

    private void send(Prefill prefill) {
        prefill.leg.send(
                proxied.inference().route.target(request.getHttpURI().getQuery()),
                ProxyHeaders.toWorker(context, request, proxied.requestId(), prefill.leg.booking()),
                prefill.body);
    }

    @Override
    public void handOver(int attempt) {
        final Prefill prefill = prefills[attempt];
        try {
            if (prefill.rendezvous != null) {
                decodeBody = prefill.body;
            } else {
                final VerbatimJson answer = prefill.answer;
                prefill.answer = null;
                if (!prefill.verdict.equals(PrefillLeg.OK)) {
                    flow.prefillFailed(attempt, prefill.verdict);
                    return;
                }
                if (prefill.complete != null) {
                    flow.prefillComplete(attempt);
                    return;
                }
                final VerbatimJson body = prefill.bodies.decode(answer).orElse(null);
                if (body == null) { // such as one whose first token is the last
                    flow.prefillFailed(attempt, NO_BLOCKS);
                    return;
                }
                decodeBody = ByteBuffer.wrap(body.bytes());
            }
        } catch (MalformedJsonException e) {
            flow.prefillFailed(attempt, MALFORMED);
            return;
        }
        flow.handedOver(attempt);
    }

    @Override
    public void answer(int attempt) {
        final Prefill prefill = prefills[attempt];
        decode.answerWith(prefill.complete, prefill.leg.booking());
    }

    @Override
    public void chooseDecode(int number, boolean split) {
        decode.chooseDecode(number);
    }

    @Override
    public void sendDecode() {
        final Prefill prefill = flow.isSplit() ? prefills[flow.attempt()] : null;
        if (prefill != null && prefill.rendezvous != null && !prefill.leg.isSent()) {
            send(prefill);
        }
        decode.sendDecode();
    }

    @Override
    public void blocksFetched() {
        if (!flow.isSplit()) {
            return;
        }
        final Prefill prefill = prefills[flow.attempt()];
        prefill.blocks.fetched();
        if (!prefill.leg.isOver()) { // its answer is thrown away, but must come
            prefill.leg.abortAfter(rules.prefillTimeoutNs(), "timeout");
        }
    }

    @Override
    public boolean canAnswerAlone() {
        return context.registry().hasWhole();
    }

    /** Whether one worker is to do all of it where the hand-off fails. */
    boolean fallsBackAlone() {
        return rules.fallback() == FallbackPolicy.DECODE_ONLY && canAnswerAlone();
    }

    /** Whether the decode worker gets parameters that a prefill worker has answered with. */
    boolean isHandedOver() {
        return last.rendezvous == null;
    }

    @Override
    public void abortDecode() {
        decode.abortDecode();
    }

    @Override
    public void freePrefill(int attempt) {
        final Prefill prefill = prefills[attempt];
        if (prefill == null) {
            return; // none was chosen
        }
        failed.add(prefill.leg.booking().lease().worker());
        prefill.blocks.free();
        if (prefill.leg.isOver()) {
            return;
        }
        if (prefill.leg.isUnderWay() && prefill.rendezvous == null && !cut) {
            prefill.leg.abortAfter(Math.min(GRACE_NS, rules.prefillTimeoutNs()), "abandoned");
        } else {
            prefill.leg.abort("abandoned");
        }
    }

    @Override
    public void failed(LegFailure failure, SplitEvent next) {
        context.metrics().splits().legFailed(failure, next);
    }

    @Override
    public void report(LegFailure failure) {
        if (refusal == null) {
            decode.report(failure);
        } else {
            decode.refuse(refusal);
        }
    }

    /** What a prefill's request comes to. */
    private final class Outcome implements PrefillLeg.Listener {
        private final int attempt;

        Outcome(int attempt) {
            this.attempt = attempt;
        }

        @Override
        public String judge(VerbatimJson answer) {
            final Prefill prefill = prefills[attempt];
            prefill.verdict = verdict(prefill, answer);
            return prefill.verdict;
        }

        private String verdict(Prefill prefill, VerbatimJson answer) {
            if (prefill.rendezvous != null) {
                return PrefillLeg.OK; // nothing is read of it
            }
            if (answer == null) {
                return MALFORMED;
            }
            try {
                final VerbatimJson whole = prefill.bodies.complete(answer).orElse(null);
                if (whole != null) {
                    prefill.complete = CompleteAnswer.of(proxied.inference(), whole);
                    return PrefillLeg.OK;
                }
                return prefill.bodies.namesBlocks(answer) ? PrefillLeg.OK : NO_BLOCKS;
            } catch (MalformedJsonException | ProtocolException e) {
                return MALFORMED;
            }
        }

        @Override
        public void answered(VerbatimJson answer) {
            final Prefill prefill = prefills[attempt];
            final long now = System.nanoTime();
            prefill.answeredNs = now;
            final long ns = now - prefill.leg.sentNs();
            context.metrics().splits().prefilled(prefill.leg.booking().upstream(), ns);
            context.split()
                    .policy()
                    .learnRemote(
                            prefill.leg.booking().upstream().pace(),
                            prefill.leg.booking().decision().tokensToCompute(),
                            ns / 1e9);
            if (prefill.rendezvous == null) {
                prefill.answer = answer;
            }
            prefill.blocks.answered(held(prefill, answer));
            flow.prefillAnswered(attempt);
        }

        private PrefillBlocks.Held held(Prefill prefill, VerbatimJson answer) {
            if (prefill.protocol() == HandoffProtocol.VLLM && answer != null) {
                try {
                    return KvTransferParams.in(answer)
                            .map(context.split().release()::hold)
                            .orElseGet(NothingHeld::new);
                } catch (MalformedJsonException e) {
                    return new Stranded(HandoffProtocol.VLLM);
                }
            }
            return answer != null && isComplete(prefill, answer)
                    ? new NothingHeld()
                    : new Stranded(prefill.protocol());
        }

        private static boolean isComplete(Prefill prefill, VerbatimJson answer) {
            try {
                return prefill.bodies.complete(answer).isPresent();
            } catch (MalformedJsonException e) {
                return false;
            }
        }

        @Override
        public void refused(int status, byte[] body) {
            if (canAnswerAlone()) {
                flow.notSplit(attempt); // the client gets a worker's own answer
            } else {
                refusal = ApiException.ofWorker(status, body);
                flow.prefillRefused(attempt);
            }
        }

        @Override
        public void failed(UpstreamFault fault) {
            final Prefill prefill = prefills[attempt];
            if (prefill.leg.isAnswered()) {
                prefill.blocks.answered(new Stranded(prefill.protocol()));
            }
            flow.prefillFailed(attempt, fault.spelling());
        }

        @Override
        public void defect() {
            flow.prefillFailed(attempt, "internal");
        }

        @Override
        public void aborted() {
            final Prefill prefill = prefills[attempt];
            prefill.blocks.answered(new Stranded(prefill.protocol()));
        }
    }

    /** A prefill that left no blocks behind. */
    private static final class NothingHeld implements PrefillBlocks.Held {
        @Override
        public void fetched() {}

        @Override
        public void free() {}
    }

    /** Blocks that an engine frees by itself only: there is no call, or no name, to free them. */
    private final class Stranded implements PrefillBlocks.Held {
        private final HandoffProtocol protocol;

        Stranded(HandoffProtocol protocol) {
            this.protocol = protocol;
        }

        @Override
        public void fetched() {}

        @Override
        public void free() {
            context.metrics().splits().stranded(protocol);
        }
    }
}
