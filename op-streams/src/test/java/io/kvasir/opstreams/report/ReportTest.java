package io.kvasir.opstreams.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.generate.SmallTrace;
import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.Indexes;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsWriter;

import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;

class ReportTest {
    private static final String PEER = "SMG kv-index";

    @TempDir private Path dir;

    /** What a run printed and how it ended. */
    private record Run(int exitCode, String out, String err) {}

    private static Run run(String... args) throws InterruptedException {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final int exitCode =
                Report.run(
                        List.of(args),
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8));
        return new Run(
                exitCode,
                out.toString(StandardCharsets.UTF_8),
                err.toString(StandardCharsets.UTF_8));
    }

    private static Document parse(String xml)
            throws ParserConfigurationException, SAXException, IOException {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(xml.getBytes(StandardCharsets.UTF_8)));
    }

    @Tag("integration") // takes long
    @Test
    void onePrintedTableAndAWellFormedPageWithACurvePerIndex()
            throws IOException, InterruptedException, ParserConfigurationException, SAXException {
        final Path stream = dir.resolve("conv16_w64.kvops"); // a name that the peers have
        SmallTrace.write(stream, false);
        final Path out = dir.resolve("out");
        final Run run =
                run(
                        stream.toString(),
                        "--forks",
                        "0",
                        "--warm-up-seconds",
                        "0",
                        "--out",
                        out.toString());
        assertEquals(0, run.exitCode, run.err);

        final String[] lines = run.out.split("\n", -1);
        for (String column : List.of("kvasir", "min–max", "hashmap", "ratio", PEER)) {
            assertTrue(lines[0].contains(column), lines[0]);
        }
        final String apply =
                Arrays.stream(lines)
                        .filter(line -> line.contains("inorder  apply_ns_per_block"))
                        .findFirst()
                        .orElseThrow();
        assertTrue(apply.contains(" 43.3 "), apply); // the peer's figure
        assertTrue(run.out.contains("beside   query_p50_us"), run.out);
        assertFalse(run.out.contains("inorder  query_p999_us"), run.out); // of 180 queries

        final Document page = parse(Files.readString(out.resolve("index.html")));
        assertEquals(1, page.getElementsByTagName("table").getLength());
        assertEquals(2, page.getElementsByTagName("svg").getLength());
        assertEquals(2 * Indexes.names().size(), page.getElementsByTagName("polyline").getLength());
        assertTrue(page.getElementsByTagName("circle").getLength() >= 8, "no marks of peers");
        assertEquals(0, page.getElementsByTagName("script").getLength());

        final List<String> csv = Files.readAllLines(out.resolve("figures.csv"));
        assertEquals("stream,mode,index,figure,median,min,max", csv.getFirst());
        assertTrue(
                csv.stream()
                        .anyMatch(line -> line.startsWith("conv16_w64,inorder,kvasir,apply_ns")));
    }

    @Test
    void aWrongAnswerEndsWithOne() throws IOException, InterruptedException {
        final Path bad = dir.resolve("bad.kvops");
        try (KvopsWriter w = new KvopsWriter(bad, 16, 2, 10, 0, KvopsHeader.CHECKSUMS)) {
            w.query(0, 0, 1, new long[] {1}, 1);
        }
        final Run run =
                run(
                        bad.toString(),
                        "--forks",
                        "0",
                        "--warm-up-seconds",
                        "0",
                        "--mode",
                        "inorder",
                        "--index",
                        "kvasir",
                        "--out",
                        dir.toString());
        assertEquals(1, run.exitCode, run.err);
        assertTrue(run.out.contains("WRONG ANSWERS: 1"), run.out);
    }

    @Test
    void aFormerReportIsReplacedAndNotWrittenOver() throws IOException, InterruptedException {
        final Path stream = dir.resolve("s.kvops");
        SmallTrace.write(stream, false);
        final Path out = Files.createDirectories(dir.resolve("out"));
        for (String name : List.of("figures.csv", "index.html")) {
            Files.createLink(
                    dir.resolve(name), Files.writeString(out.resolve(name), "the former one"));
        }
        final Run run =
                run(
                        stream.toString(),
                        "--forks",
                        "0",
                        "--warm-up-seconds",
                        "0",
                        "--mode",
                        "inorder",
                        "--out",
                        out.toString());
        assertEquals(0, run.exitCode, run.err);
        for (String name : List.of("figures.csv", "index.html")) {
            assertEquals("the former one", Files.readString(dir.resolve(name)), name);
        }
        assertTrue(Files.readString(out.resolve("figures.csv")).startsWith("stream,mode,"));
        try (var all = Files.list(out)) {
            assertEquals(2, all.count(), "nothing unfinished is left");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--forks 1 | 2 | no stream given",
                "x --forks | 2 | --forks needs a value",
                "x --forks many | 2 | --forks many is no number",
                "x --warm-up-seconds long | 2 | --warm-up-seconds long is no number",
                "x --forks -1 | 2 | forks must not be negative",
                "x --index nonesuch | 2 | no index is named nonesuch",
                "x --mode sideways | 2 | no mode is named sideways",
                "x --colour red | 2 | unknown option --colour",
                "no-such.kvops | 3 | no-such.kvops"
            })
    void whatCannotBeDoneIsSaid(String line, int exitCode, String words)
            throws InterruptedException {
        final Run run = run(line.split(" ", -1));
        assertEquals(exitCode, run.exitCode, run.err);
        assertTrue(run.err.contains(words), run.err);
        assertEquals(exitCode == 2, run.err.contains("usage:"), run.err);
    }

    @Test
    void thePeersFiguresSayWhereTheyComeFrom() {
        final Peers peers = Peers.read();
        assertTrue(
                peers.origin().contains("reference measurements, same machine kind"),
                peers.origin());
        assertEquals(List.of(PEER, "Dynamo CRTC"), peers.names());
        assertEquals(
                28.691,
                peers.figure("conv16_w1000", "inorder", PEER, Figure.QUERY_P99_US).orElseThrow());
        assertTrue(peers.figure("conv16_w64", "openloop", PEER, Figure.QUERY_P99_US).isEmpty());
        assertThrows(IllegalArgumentException.class, () -> Peers.parse(List.of("titles", "a,b")));
    }

    @Test
    void peersWithoutFiguresOfTheStreamsHaveNoColumns() {
        final Peers peers = Peers.read();
        assertEquals(peers.names(), peers.of(Set.of("conv16_w64", "own")).names());
        assertEquals(List.of(), peers.of(Set.of("own")).names());
    }

    @Test
    void eachFurtherNineTakesTheSameRoom()
            throws ParserConfigurationException, SAXException, IOException {
        final Histogram ns = new Histogram(3);
        for (int i = 1; i <= 10_000; i++) {
            ns.recordValue(i * 10L); // 0.01 to 100 microseconds
        }
        final String svg =
                new LatencyChart("a < b")
                        .curve("\"one\" & only", ns)
                        .curve("nothing", new Histogram(3))
                        .marks("peer", List.of(90.0, 99.0, 99.9), List.of(1.0, 10.0, 100.0))
                        .svg();
        final Document picture = parse(svg);
        assertEquals("a < b", picture.getElementsByTagName("title").item(0).getTextContent());
        assertEquals(1, picture.getElementsByTagName("polyline").getLength());
        final List<Double> xs = new ArrayList<>();
        final List<Double> ys = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            final Element mark = (Element) picture.getElementsByTagName("circle").item(i);
            xs.add(Double.valueOf(mark.getAttribute("cx")));
            ys.add(Double.valueOf(mark.getAttribute("cy")));
        }
        assertEquals(xs.get(1) - xs.get(0), xs.get(2) - xs.get(1), 0.15);
        assertEquals(ys.get(0) - ys.get(1), ys.get(1) - ys.get(2), 0.15);
        assertTrue(xs.get(0) < xs.get(1) && ys.get(0) > ys.get(1), "right and up");
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "0.000123456, 0.000123",
        "0.5, 0.500",
        "43.27, 43.3",
        "1444.86, 1445",
        "1048576, 1048576"
    })
    void numbersHaveThreeDigitsThatSaySomething(double value, String expected) {
        assertEquals(expected, Comparison.number(value));
    }
}
