package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The launcher script with fake Javas and a fake Maven; it is run as a user would run it. */
class LauncherTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    /** Writes its arguments: the name of a script and its text, and so on. */
    private static final String SCRIPTS =
            "while [ $# -gt 0 ]; do printf %s \"$2\" > \"$1\"; chmod 755 \"$1\"; shift 2; done";

    @TempDir private Path dir;
    private Path bin;
    private final Map<String, String> environment = new HashMap<>();
    private final List<Path> links = new ArrayList<>();

    /** What the launcher wrote and how it ended. */
    private record Run(int exitCode, List<String> out, String err) {}

    @BeforeEach
    void aPathWithTheToolsButWithoutJavaAndMaven() throws IOException, InterruptedException {
        bin = Files.createDirectory(dir.resolve("bin"));
        final List<String> tools = new ArrayList<>();
        for (String tool :
                List.of(
                        "bash",
                        "env",
                        "sed",
                        "head",
                        "find",
                        "touch",
                        "date",
                        "dirname",
                        "readlink",
                        "mkdir",
                        "rm",
                        "cat",
                        "sleep")) {
            tools.add(bin.resolve(tool).toString());
            tools.add(text("exec " + onPath(tool) + " \"$@\""));
        }
        byShell(SCRIPTS, tools);
        environment.put("PATH", bin.toString());
        environment.put("HOME", dir.toString());
        environment.put("KVASIR_JDK_DIRS", dir.resolve("no-jdks").toString());
    }

    @AfterEach
    void removeLinks() throws IOException {
        for (Path link : links) {
            Files.delete(link);
        }
    }

    @Test
    void javaHomeIsUsedWhenItIsJava25() throws Exception {
        final Path jdk = fakeJdk("jdk-25", "25.0.3");
        environment.put("JAVA_HOME", jdk.toString());
        environment.put("KVASIR_DRY_RUN", "1");
        environment.put("KVASIR_OPTS", "-Xmx1g -Dx=y");
        final Run run = kvasir(ROOT.resolve("kvasir"), "hash", "--tokens", "1, 2");
        assertEquals(0, run.exitCode(), run.err());
        assertEquals(jdk + "/bin/java", run.out().getFirst());
        assertTrue(run.out().contains("--enable-native-access=ALL-UNNAMED"), run.out().toString());
        assertTrue(run.out().contains("-Xmx1g"), run.out().toString());
        assertEquals(List.of("hash", "--tokens", "1, 2"), lastThree(run.out()));
    }

    @Test
    void aGatewayKeepsItsHeapSmallUnlessOptionsSayOtherwise() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25.0.3").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        environment.put("KVASIR_OPTS", "-Xms1g");
        final List<String> serve = kvasir(ROOT.resolve("kvasir"), "serve").out();
        assertTrue(serve.contains("-XX:MaxHeapFreeRatio=40"), serve.toString());
        assertTrue(serve.indexOf("-Xms32m") < serve.indexOf("-Xms1g"), "the last one counts");
        final Run debug = kvasir(ROOT.resolve("kvasir"), "--debug", "serve", "--model", "hash");
        assertEquals(serve.indexOf("-Xms32m"), debug.out().indexOf("-Xms32m"), debug.err());
        final List<String> other = kvasir(ROOT.resolve("kvasir"), "hash").out();
        assertFalse(other.contains("-Xms32m"), other.toString());
    }

    @Test
    void aProcessWithoutHeapEndsUnlessOptionsSayOtherwise() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25.0.3").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        environment.put("KVASIR_OPTS", "-XX:-ExitOnOutOfMemoryError");
        final List<String> serve = kvasir(ROOT.resolve("kvasir"), "serve").out();
        final int ends = serve.indexOf("-XX:+ExitOnOutOfMemoryError");
        assertTrue(ends >= 0, serve.toString());
        assertTrue(ends < serve.indexOf("-XX:-ExitOnOutOfMemoryError"), "the last one counts");
    }

    /** C and POSIX, as of containers and services, and a locale that is not installed. */
    @Tag("integration") // many processes
    @ParameterizedTest
    @CsvSource({
        "LC_ALL, POSIX",
        "LC_CTYPE, C",
        "LANG, C",
        "LC_ALL, xx_YY.UTF-8",
        "KVASIR_LOG, INFO"
    })
    void whereTheCharsetIsAsciiTheJvmReadsAndWritesUtf8(String variable, String value)
            throws Exception {
        environment.put(variable, value);
        assertEquals("C.UTF-8", localeOfTheJvm());
    }

    @Tag("integration") // many processes
    @Test
    void anotherCharsetIsLeftAlone() throws Exception {
        environment.put("LC_CTYPE", "C.UTF-8");
        assertEquals("unset", localeOfTheJvm());
        environment.put("LC_CTYPE", "xx_YY");
        script(bin.resolve("locale"), "echo ISO-8859-1");
        assertEquals("unset", localeOfTheJvm());
        environment.put("LC_ALL", "xx_YY");
        assertEquals("xx_YY", localeOfTheJvm());
    }

    /** LC_ALL as the JVM gets it. */
    private String localeOfTheJvm() throws Exception {
        final Path checkout = checkout();
        final Path jdk = fakeJdk("jdk-25", "25");
        script(jdk.resolve("bin/java"), "echo \"${LC_ALL-unset}\"");
        environment.put("JAVA_HOME", jdk.toString());
        fakeMaven("mkdir -p cli/target; touch cli/target/kvasir.jar");
        return kvasir(checkout.resolve("kvasir"), "hash").out().getLast();
    }

    @Test
    void whatItWritesIsUtf8UnlessOptionsSayOtherwise() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25.0.3").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        environment.put("KVASIR_OPTS", "-Dstdout.encoding=ISO-8859-1");
        final List<String> out = kvasir(ROOT.resolve("kvasir"), "hash").out();
        final int own = out.indexOf("-Dstdout.encoding=UTF-8");
        assertTrue(own >= 0 && out.contains("-Dstderr.encoding=UTF-8"), out.toString());
        assertTrue(own < out.indexOf("-Dstdout.encoding=ISO-8859-1"), "the last one counts");
    }

    @Tag("integration") // many processes
    @Test
    void onlyWhatSharesMemoryGetsItsFlagsAndDoesWithoutTheCache() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25.0.3").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        final String[] flags =
                Files.readString(ROOT.resolve("pom.xml"))
                        .split("<chronicle.flags>|</chronicle.flags>", -1)[1]
                        .split(" ", -1);
        for (String[] sharing :
                new String[][] {
                    {"serve", "--shared-memory-dir", "/m"},
                    {"serve", "--model", "m", "--shared-memory-dir=/m"},
                    {"--debug", "serve", "--shared-memory-dir", "/m"},
                    {"--debug", "shared", "/m"},
                    {"shared", "/m"}
                }) {
            final List<String> out = kvasir(ROOT.resolve("kvasir"), sharing).out();
            assertTrue(out.containsAll(List.of(flags)), out.toString());
            assertTrue(out.stream().noneMatch(o -> o.startsWith("-XX:AOTCache")), out.toString());
        }
        for (String[] other :
                new String[][] {
                    {"serve", "--model", "m"},
                    {"sim"},
                    {"hash", "--shared-memory-dir", "/m"},
                    {"--debug", "hash", "serve", "--shared-memory-dir", "/m"},
                    {"--debug"}
                }) {
            final List<String> out = kvasir(ROOT.resolve("kvasir"), other).out();
            assertTrue(out.stream().noneMatch(o -> o.startsWith("--add-")), out.toString());
        }
        environment.put("KVASIR_SHARED_MEMORY_DIR", "/m");
        final List<String> out = kvasir(ROOT.resolve("kvasir"), "serve").out();
        assertTrue(out.containsAll(List.of(flags)), out.toString());
    }

    @Test
    void anOldJavaHomeIsPassedOverForTheJavaOnThePath() throws Exception {
        final Path jdk = fakeJdk("jdk-25", "25");
        environment.put("JAVA_HOME", fakeJdk("jdk-17", "17.0.15").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        link(bin.resolve("java"), jdk.resolve("bin/java"));
        final Run run = kvasir(ROOT.resolve("kvasir"), "hash");
        assertEquals(jdk.toRealPath() + "/bin/java", run.out().getFirst(), run.err());
    }

    @Test
    void theUsualPlacesAreSearchedWhenTheDefaultJavaIsOld() throws Exception {
        final Path old = fakeJdk("jvm/jdk-17", "17.0.15");
        fakeJdk("jvm/jdk-26", "26.0.1");
        final Path jdk = fakeJdk("jvm/temurin-25", "25.0.3");
        link(bin.resolve("java"), old.resolve("bin/java"));
        environment.put("JAVA_HOME", dir.resolve("gone").toString());
        environment.put("KVASIR_JDK_DIRS", dir.resolve("none") + ":" + dir.resolve("jvm"));
        environment.put("KVASIR_DRY_RUN", "1");
        assertEquals(jdk + "/bin/java", kvasir(ROOT.resolve("kvasir"), "hash").out().getFirst());
    }

    @Test
    void aHomeWithoutReleaseFileIsAskedForItsVersion() throws Exception {
        final Path jdk = fakeJdk("jdk", "25");
        Files.delete(jdk.resolve("release"));
        environment.put("JAVA_HOME", jdk.toString());
        environment.put("KVASIR_DRY_RUN", "1");
        assertEquals(jdk + "/bin/java", kvasir(ROOT.resolve("kvasir"), "hash").out().getFirst());
    }

    @Test
    void kvasirJavaWinsAndIsRefusedByNameWhenItIsTooOld() throws Exception {
        final Path jdk = fakeJdk("mine", "25.0.1");
        environment.put("JAVA_HOME", fakeJdk("other", "25").toString());
        environment.put("KVASIR_JAVA", jdk + "/bin/java");
        environment.put("KVASIR_DRY_RUN", "1");
        final Run run = kvasir(ROOT.resolve("kvasir"), "hash");
        assertEquals(jdk.toRealPath() + "/bin/java", run.out().getFirst(), run.err());

        environment.put("KVASIR_JAVA", fakeJdk("old", "21.0.2").toString());
        final Run refused = kvasir(ROOT.resolve("kvasir"), "hash");
        assertEquals(3, refused.exitCode());
        assertTrue(refused.err().contains("old is Java 21, 25 is needed"), refused.err());
    }

    @Test
    void withoutAnyJava25TheMessageSaysWhereItLookedAndWhatToDo() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-17", "17.0.15").toString());
        final Run run = kvasir(ROOT.resolve("kvasir"), "hash");
        assertEquals(3, run.exitCode());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains("no Java 25 found"), run.err());
        assertTrue(run.err().contains("jdk-17"), run.err());
        assertTrue(run.err().contains("KVASIR_JAVA"), run.err());
    }

    @Tag("integration") // many processes
    @Test
    void aMissingJarIsBuiltOnceAndASourceSavedLaterBuildsAgain() throws Exception {
        final Path checkout = checkout();
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        fakeMaven("mkdir -p cli/target; echo built >> builds; touch cli/target/kvasir.jar");

        final Run first = kvasir(checkout.resolve("kvasir"), "hash");
        assertEquals(0, first.exitCode(), first.err());
        assertTrue(first.err().contains("kvasir: building"), first.err());
        assertEquals("hash", first.out().getLast(), "the fake java prints its arguments");

        assertEquals("", kvasir(checkout.resolve("kvasir"), "hash").err());
        final Path source = checkout.resolve("core/src/main/A.java");
        Files.setLastModifiedTime(
                source,
                FileTime.fromMillis(
                        Files.getLastModifiedTime(checkout.resolve("cli/target/kvasir.jar"))
                                        .toMillis()
                                + 1_000));
        assertTrue(kvasir(checkout.resolve("kvasir"), "hash").err().contains("kvasir: building"));
        assertEquals(2, Files.readAllLines(checkout.resolve("builds")).size());
    }

    @Tag("integration") // many processes
    @Test
    void aSourceSavedWhileTheBuildRanBuildsAgainAndTheJarKeepsItsTime() throws Exception {
        final Path checkout = checkout();
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        fakeMaven(
                "mkdir -p cli/target; echo built >> builds; sleep 0.05; touch core/src/main/A.java;"
                        + " sleep 0.05; touch cli/target/kvasir.jar");
        assertEquals(0, kvasir(checkout.resolve("kvasir"), "hash").exitCode());
        final Path jar = checkout.resolve("cli/target/kvasir.jar");
        assertTrue(
                Files.getLastModifiedTime(jar)
                                .compareTo(
                                        Files.getLastModifiedTime(
                                                checkout.resolve("core/src/main/A.java")))
                        > 0);
        fakeMaven("echo built >> builds");
        assertTrue(kvasir(checkout.resolve("kvasir"), "hash").err().contains("kvasir: building"));
        assertEquals("", kvasir(checkout.resolve("kvasir"), "hash").err());
        assertEquals(2, Files.readAllLines(checkout.resolve("builds")).size());
    }

    @Test
    void theAotCacheIsNamedWhereTheBuildMadeOne() throws Exception {
        final Path checkout = checkout();
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        fakeMaven("mkdir -p cli/target; touch cli/target/kvasir.jar");
        final String option = "-XX:AOTCache=" + checkout + "/cli/target/kvasir.aot";
        assertFalse(kvasir(checkout.resolve("kvasir"), "hash").out().contains(option));
        Files.createFile(checkout.resolve("cli/target/kvasir.aot"));
        assertTrue(kvasir(checkout.resolve("kvasir"), "hash").out().contains(option));
        environment.put("KVASIR_OPTS", "-XX:AOTCacheOutput=mine.aot");
        assertFalse(kvasir(checkout.resolve("kvasir"), "train").out().contains(option));
    }

    @Test
    void aFailedBuildShowsMavensOutput() throws Exception {
        final Path checkout = checkout();
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        fakeMaven("echo '[ERROR] cannot find symbol'; exit 1");
        final Run run = kvasir(checkout.resolve("kvasir"), "hash");
        assertEquals(3, run.exitCode());
        assertTrue(run.err().contains("[ERROR] cannot find symbol"), run.err());
        assertTrue(run.err().contains("the build failed"), run.err());
        assertTrue(Files.notExists(checkout.resolve("cli/target/build-lock")), "lock released");
    }

    @Test
    void withoutMavenTheMessageSaysSo() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        final Run run = kvasir(checkout().resolve("kvasir"), "hash");
        assertEquals(3, run.exitCode());
        assertTrue(run.err().contains("there is no Maven"), run.err());
    }

    @Test
    void aLinkInAnotherFolderStartsTheSameCheckout() throws Exception {
        environment.put("JAVA_HOME", fakeJdk("jdk-25", "25").toString());
        environment.put("KVASIR_DRY_RUN", "1");
        link(dir.resolve("k1"), ROOT.resolve("kvasir"));
        link(dir.resolve("k2"), Path.of("k1"));
        final Run run = kvasir(dir.resolve("k2"), "hash");
        assertTrue(
                run.out().contains(ROOT.toRealPath().resolve("cli/target/kvasir.jar").toString()),
                run.out().toString());
    }

    private Path checkout() throws IOException, InterruptedException {
        final Path checkout = Files.createDirectories(dir.resolve("check out"));
        byShell(
                "cp -p \"$1\" \"$2\"",
                List.of(ROOT.resolve("kvasir").toString(), checkout.resolve("kvasir").toString()));
        Files.writeString(checkout.resolve("pom.xml"), "<project/>");
        Files.createDirectories(checkout.resolve("core/src/main"));
        Files.writeString(checkout.resolve("core/src/main/A.java"), "class A {}");
        return checkout;
    }

    private Path fakeJdk(String name, String version) throws IOException, InterruptedException {
        final Path home = dir.resolve(name);
        Files.createDirectories(home.resolve("bin"));
        Files.writeString(home.resolve("release"), "JAVA_VERSION=\"" + version + "\"\n");
        script(
                home.resolve("bin/java"),
                "[ \"$1\" = -version ] && { echo 'openjdk version \""
                        + version
                        + "\"' >&2; exit; }; printf '%s\\n' \"$@\"");
        return home;
    }

    private void fakeMaven(String body) throws IOException, InterruptedException {
        script(bin.resolve("mvn"), body);
    }

    private static void script(Path file, String body) throws IOException, InterruptedException {
        byShell(SCRIPTS, List.of(file.toString(), text(body)));
    }

    private static String text(String body) {
        return "#!" + onPath("bash") + "\n" + body + "\n";
    }

    /**
     * Has another process write what is executed later. A file that this JVM writes is open in the
     * processes that other tests start meanwhile, until these have closed it, and a file that is
     * open for writing cannot be executed.
     */
    private static void byShell(String command, List<String> arguments)
            throws IOException, InterruptedException {
        final List<String> words = new ArrayList<>();
        words.addAll(List.of(onPath("bash").toString(), "-ec", command, "bash"));
        words.addAll(arguments);
        assertEquals(0, new ProcessBuilder(words).inheritIO().start().waitFor(), command);
    }

    private void link(Path link, Path target) throws IOException {
        links.add(Files.createSymbolicLink(link, target));
    }

    private static Path onPath(String tool) {
        for (String folder : System.getenv("PATH").split(":", -1)) {
            final Path file = Path.of(folder, tool);
            if (Files.isExecutable(file)) {
                return file;
            }
        }
        throw new AssertionError("no " + tool + " on the PATH; the launcher needs it");
    }

    private static List<String> lastThree(List<String> lines) {
        return lines.subList(lines.size() - 3, lines.size());
    }

    private Run kvasir(Path script, String... args) throws IOException, InterruptedException {
        final ProcessBuilder builder = new ProcessBuilder(script.toString());
        builder.command().addAll(List.of(args));
        builder.environment().clear();
        builder.environment().putAll(environment);
        builder.directory(dir.toFile());
        final Path err = Files.createTempFile(dir, "err", ".txt");
        builder.redirectError(err.toFile());
        final Process process = builder.start();
        final String out =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(1, TimeUnit.MINUTES), "launcher hangs");
        return new Run(process.exitValue(), out.lines().toList(), Files.readString(err));
    }
}
