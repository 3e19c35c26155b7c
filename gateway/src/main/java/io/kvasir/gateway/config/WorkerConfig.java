package io.kvasir.gateway.config;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.ZmqAddress;
import io.kvasir.registry.HttpAddress;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.WrongSettingsException;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * One worker server. With data parallelism it counts as {@code dataParallelSize} workers that share
 * the URL; rank {@code r} publishes and replays on the given ports plus {@code r}.
 *
 * @param name for people, metrics and the {@code x-kvasir-worker} header; unique per gateway
 * @param url base URL of the server, without {@code /v1}
 * @param credentials value of {@code Authorization} for this server, from user and password in its
 *     URL; null for none
 * @param events ZMQ endpoint of rank 0's KV events, e.g. {@code tcp://10.0.0.7:5557}; null for
 *     none: the worker is then routed by load alone, or by what was routed to it where the gateway
 *     is approximate
 * @param eventsBind true if the gateway binds that endpoint and the engine connects to it
 * @param replay ZMQ endpoint of rank 0's replay socket; null for none
 * @param dataParallelSize data-parallel ranks, &ge; 1
 * @param eventRank rank in its events of its rank 0, &ge; 0: another one where a server has some of
 *     an engine's ranks
 * @param removals how the engine's Removed events count
 * @param topic ZMQ topic prefix; empty for all
 * @param disaggregation its role and how it hands prompts over
 * @param labels where it is, in the operator's words; in the order given
 * @param planeOrNull what rank 0 is called on the gateway's event plane, from where its events come
 *     instead of an endpoint; null for none
 * @param model name of the model that it serves; null for the gateway's first
 * @param input what it is sent of a prompt; token ids only where it does all of a request
 * @param limits what its engine can take, as far as it is said
 * @param adapters its LoRA adapters, as far as they are said
 * @param taints names of what keeps requests from it that do not tolerate that
 */
public record WorkerConfig(
        String name,
        URI url,
        Secret credentials,
        String events,
        boolean eventsBind,
        String replay,
        int dataParallelSize,
        int eventRank,
        RemovalRule removals,
        String topic,
        Disaggregation disaggregation,
        Map<String, String> labels,
        EventPlaneWorker planeOrNull,
        String model,
        WorkerInput input,
        WorkerLimits limits,
        WorkerAdapters adapters,
        Set<String> taints) {
    private static final String EVENT_WORKER = "event-worker";
    private static final String EVENT_RANK = "event-rank";
    static final List<String> KEYS =
            Stream.of(
                            List.of("url", "name", "events", "replay", "dp"),
                            List.of("removals", "bind", "topic"),
                            Disaggregation.KEYS,
                            List.of("labels", EVENT_WORKER, EVENT_RANK, "model", "input"),
                            WorkerLimits.KEYS,
                            WorkerAdapters.KEYS,
                            List.of("taints"))
                    .flatMap(List::stream)
                    .toList();
    private static final Pattern NAME = Pattern.compile("[^\\s\\p{Cntrl}\\p{Cs},/]{1,200}");
    private static final URI ANY_URL = URI.create("http://any:1");
    private static final Pattern PORT = Pattern.compile("(.*:)(\\d+)");

    /** Checks the values. */
    public WorkerConfig {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(url, "url");
        Objects.requireNonNull(removals, "removals");
        Objects.requireNonNull(topic, "topic");
        Objects.requireNonNull(disaggregation, "disaggregation");
        Objects.requireNonNull(labels, "labels");
        Objects.requireNonNull(input, "input");
        Objects.requireNonNull(limits, "limits");
        Objects.requireNonNull(adapters, "adapters");
        Objects.requireNonNull(taints, "taints");
        checkName(name);
        checkSize(dataParallelSize);
        checkRank(eventRank);
        if (replay != null && events == null) {
            throw new IllegalArgumentException(
                    "replay=" + replay + " without events; name the events endpoint too");
        }
        if (planeOrNull != null && events != null) {
            throw new IllegalArgumentException(
                    "events="
                            + events
                            + " and event-worker="
                            + Long.toUnsignedString(planeOrNull.workerId())
                            + "; events come from one of both");
        }
        if (input == WorkerInput.TOKENS && disaggregation.role() != WorkerRole.BOTH) {
            throw new IllegalArgumentException(
                    "input=tokens with role="
                            + disaggregation.role().spelling()
                            + ": workers that take token ids do all of a request; use role=both or"
                            + " input=text");
        }
        checkAddress("events", events, eventsBind);
        checkAddress("replay", replay, false);
        if (dataParallelSize > 1) {
            checkAddress("events", withPort(events, dataParallelSize - 1), eventsBind);
            checkAddress("replay", withPort(replay, dataParallelSize - 1), false);
        }
    }

    /**
     * Parses the form used by the {@code --worker} flag: {@code
     * http://host:port,events=tcp://..,replay=tcp://..,dp=2,removals=auto,bind=true,name=..,topic=..,
     * role=prefill,handoff=sglang,bootstrap=host:port,labels=zone:a;rack:7,event-worker=7,
     * event-rank=0,model=m,input=tokens,kv-blocks=8192,max-batched-tokens=8192,max-requests=256,
     * lora=A;B,lora-ids=A:1;B:2,taints=spot;night}. All but the URL is optional.
     *
     * @param flag the text
     * @return the worker
     * @throws IllegalArgumentException if keys or values are wrong; the message has a line for each
     *     of them
     */
    public static WorkerConfig parse(String flag) {
        final Map<String, String> values = new LinkedHashMap<>();
        final List<String> problems = new ArrayList<>();
        final String from = "worker '" + Setting.withoutPasswords(flag) + "': "; // of each line
        WorkerConfig worker = null;
        for (String part : flag.split(",", -1)) {
            try {
                put(part.strip(), values);
            } catch (IllegalArgumentException e) {
                problems.add(from + e.getMessage());
            }
        }
        if (!problems.isEmpty()) {
            values.putIfAbsent("url", ANY_URL.toString()); // which one of those may have meant
        }
        try {
            worker = of(values);
        } catch (IllegalArgumentException e) {
            problems.add(from + e.getMessage().replace("\n", "\n" + from));
        }
        WrongSettingsException.throwIfAny(problems);
        return worker;
    }

    private static void put(String item, Map<String, String> values) {
        final int equals = item.indexOf('=');
        final boolean bareUrl =
                values.isEmpty() && item.contains("://") && !item.startsWith("url=");
        final String key = bareUrl ? "url" : equals < 0 ? item : item.substring(0, equals);
        final String value = bareUrl ? item : equals < 0 ? null : item.substring(equals + 1);
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException(
                    "'"
                            + Setting.withoutPasswords(item)
                            + (equals < 0 && values.isEmpty()
                                    ? "' is no URL: http://host:port or https://host:port comes"
                                            + " first"
                                    : "' is not key=value; known keys: " + KEYS));
        }
        if (values.put(key, value) != null) {
            throw new IllegalArgumentException(key + " is given twice");
        }
    }

    /**
     * Makes a worker of its keys and values, as they are in a flag or a YAML mapping.
     *
     * @throws IllegalArgumentException if some are wrong; the message has a line for each
     */
    static WorkerConfig of(Map<String, String> values) {
        try {
            return read(values);
        } catch (IllegalArgumentException first) {
            WrongSettingsException.throwIfAnyFails(checks(values));
            throw first; // of values that are wrong together only
        }
    }

    /** Of each key and value by itself. */
    private static List<Runnable> checks(Map<String, String> values) {
        return Stream.concat(
                        values.keySet().stream().<Runnable>map(key -> () -> checkKey(key)),
                        Stream.<Runnable>of(
                                () -> base(given(values)),
                                () -> checkName(values.getOrDefault("name", "unnamed")),
                                () ->
                                        checkAddress(
                                                "events",
                                                values.get("events"),
                                                "true".equals(values.get("bind"))),
                                () -> bool("bind", values.getOrDefault("bind", "false")),
                                () -> checkAddress("replay", values.get("replay"), false),
                                () -> checkSize(number("dp", values.getOrDefault("dp", "1"))),
                                () -> eventRank(values),
                                () -> rule(values.getOrDefault("removals", "auto")),
                                () -> Disaggregation.of(values, ANY_URL),
                                () -> WorkerLabels.parse(values.getOrDefault("labels", "")),
                                () -> plane(values),
                                () -> WorkerInput.parse(values.getOrDefault("input", "text")),
                                () -> WorkerLimits.of(values),
                                () -> WorkerAdapters.of(values),
                                () -> WorkerLabels.taints(values)))
                .toList();
    }

    private static void checkKey(String key) {
        if (!KEYS.contains(key)) {
            throw new IllegalArgumentException("unknown key '" + key + "'; known keys: " + KEYS);
        }
    }

    private static void checkName(String name) {
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "a worker's name has 1 to 200 characters, no blank, control character, half of"
                            + " a surrogate pair, comma or slash among them");
        }
    }

    private static void checkSize(int dataParallelSize) {
        if (dataParallelSize < 1) {
            throw new IllegalArgumentException("dp=" + dataParallelSize + " must be at least 1");
        }
    }

    private static void checkRank(int eventRank) {
        if (eventRank < 0) {
            throw new IllegalArgumentException(
                    EVENT_RANK + "=" + eventRank + " must not be negative");
        }
    }

    private static URI given(Map<String, String> values) {
        final String url = values.get("url");
        if (url == null) {
            throw new IllegalArgumentException("no url; it comes first or as url=http://host:port");
        }
        return uri(url);
    }

    private static WorkerConfig read(Map<String, String> values) {
        values.keySet().forEach(WorkerConfig::checkKey);
        final URI given = given(values);
        final URI base = base(given);
        return new WorkerConfig(
                values.getOrDefault("name", base.getAuthority()),
                base,
                basic(given.getRawUserInfo()),
                values.get("events"),
                bool("bind", values.getOrDefault("bind", "false")),
                values.get("replay"),
                number("dp", values.getOrDefault("dp", "1")),
                eventRank(values),
                rule(values.getOrDefault("removals", "auto")),
                values.getOrDefault("topic", ""),
                Disaggregation.of(values, base),
                WorkerLabels.parse(values.getOrDefault("labels", "")),
                plane(values),
                values.get("model"),
                WorkerInput.parse(values.getOrDefault("input", "text")),
                WorkerLimits.of(values),
                WorkerAdapters.of(values),
                WorkerLabels.taints(values));
    }

    private static int eventRank(Map<String, String> values) {
        final String rank = values.get(EVENT_RANK);
        if (rank != null && !values.containsKey("events") && !values.containsKey(EVENT_WORKER)) {
            throw new IllegalArgumentException(
                    "event-rank=" + rank + " without events and event-worker; name one of both");
        }
        final int number = rank == null ? 0 : number(EVENT_RANK, rank);
        checkRank(number);
        return number;
    }

    private static EventPlaneWorker plane(Map<String, String> values) {
        final String worker = values.get(EVENT_WORKER);
        if (worker == null) {
            return null;
        }
        try {
            return new EventPlaneWorker(Long.parseUnsignedLong(worker), eventRank(values));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "event-worker=" + worker + " must be a whole number of 64 bits", e);
        }
    }

    /** The same as a worker of a model. */
    WorkerConfig withModel(String served) {
        return served.equals(model)
                ? this
                : new WorkerConfig(
                        name,
                        url,
                        credentials,
                        events,
                        eventsBind,
                        replay,
                        dataParallelSize,
                        eventRank,
                        removals,
                        topic,
                        disaggregation,
                        labels,
                        planeOrNull,
                        served,
                        input,
                        limits,
                        adapters,
                        taints);
    }

    private static URI uri(String url) {
        Setting.checkPasswords(url);
        final URI uri;
        try {
            uri = URI.create(url);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "url=" + Setting.withoutPasswords(url) + " is no URL", e);
        }
        final String problem = HttpAddress.problemOrNull(uri);
        if (problem != null) {
            throw new IllegalArgumentException(
                    "url=" + Setting.withoutPasswords(url) + " " + problem);
        }
        if (uri.getRawQuery() != null || uri.getRawFragment() != null) {
            throw new IllegalArgumentException(
                    "url="
                            + Setting.withoutPasswords(url)
                            + " must have no query and no fragment: requests have their own");
        }
        return uri;
    }

    /** The URL without user, password and a slash at its end. */
    private static URI base(URI url) {
        final String path = url.getRawPath() == null ? "" : url.getRawPath().replaceAll("/+$", "");
        final String authority =
                url.getPort() < 0 ? url.getHost() : url.getHost() + ":" + url.getPort();
        if (path.equals("/v1")) {
            throw new IllegalArgumentException(
                    "url="
                            + url.getScheme()
                            + "://"
                            + authority
                            + path
                            + " must be the server's base, without /v1");
        }
        return URI.create(url.getScheme() + "://" + authority + path);
    }

    private static Secret basic(String rawUserInfo) {
        if (rawUserInfo == null) {
            return null;
        }
        final String userAndPassword =
                URLDecoder.decode(rawUserInfo.replace("+", "%2B"), StandardCharsets.UTF_8);
        return new Secret(
                "Basic "
                        + Base64.getEncoder()
                                .encodeToString(userAndPassword.getBytes(StandardCharsets.UTF_8)));
    }

    /** By what the transport takes: it would leave the worker out, and its requests with it. */
    private static void checkAddress(String key, String addressOrNull, boolean isBound) {
        if (addressOrNull == null) {
            return;
        }
        try {
            if (isBound) {
                ZmqAddress.checkBindable(addressOrNull);
            } else {
                ZmqAddress.checkConnectable(addressOrNull);
            }
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(key + ": " + e.getMessage(), e);
        }
    }

    private static boolean bool(String key, String value) {
        return switch (value) {
            case "true" -> true;
            case "false" -> false;
            default ->
                    throw new IllegalArgumentException(
                            key + "=" + value + " must be true or false");
        };
    }

    static int number(String key, String value) {
        try {
            return Integer.parseInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(key + "=" + value + " must be a whole number", e);
        }
    }

    private static RemovalRule rule(String value) {
        try {
            return RemovalRule.valueOf(value.toUpperCase(Locale.ROOT).replace('-', '_'));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "removals=" + value + "; one of: physical, last-copy, auto", e);
        }
    }

    /** What a rank is called on the event plane; null where it is not there. */
    public EventPlaneWorker plane(int rank) {
        return planeOrNull == null ? null : planeOrNull.plus(rank);
    }

    /** The events endpoint of a rank; null for none. */
    public String events(int rank) {
        return withPort(events, rank);
    }

    /** The replay endpoint of a rank; null for none. */
    public String replay(int rank) {
        return withPort(replay, rank);
    }

    private static String withPort(String endpoint, int rank) {
        if (endpoint == null || rank == 0) {
            return endpoint;
        }
        final Matcher port = PORT.matcher(endpoint);
        if (!port.matches()) {
            throw new IllegalArgumentException(
                    endpoint + " has no port to count dp ranks from; give tcp://host:port");
        }
        return port.group(1) + (Long.parseLong(port.group(2)) + rank);
    }
}
