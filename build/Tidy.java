import com.google.googlejavaformat.java.Formatter;
import com.google.googlejavaformat.java.FormatterException;
import com.google.googlejavaformat.java.JavaFormatterOptions;
import com.sun.source.doctree.DocCommentTree;
import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.ModifiersTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.DocTrees;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePathScanner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.lang.model.element.Modifier;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/**
 * What the compiler does not check: one format, Javadoc on everything public, a short list of calls that are
 * forbidden outside the class that owns them. {@code check} reports and fails, {@code fix} rewrites the format.
 */
class Tidy {
    /** A call that only the named file may make, and why. */
    record Forbidden(Pattern call, String allowedIn, String why) {}

    private static final List<Forbidden> FORBIDDEN =
            List.of(
                    new Forbidden(
                            Pattern.compile("\\bsun\\.misc\\.Unsafe\\b"), "", "off-heap access goes through io.kvasir.core.memory"),
                    new Forbidden(
                            Pattern.compile("\\bSystem\\.currentTimeMillis\\("), "", "time enters through a Clock or as data"),
                    new Forbidden(Pattern.compile("\\.printStackTrace\\("), "", "errors go to the log with their values"),
                    new Forbidden(Pattern.compile("\\bThread\\.stop\\("), "", "threads end by their own loop condition"));

    private static final int MAX_PASSES = 4;
    private static final JavaCompiler JAVAC = ToolProvider.getSystemJavaCompiler();
    private final Queue<String> complaints = new ConcurrentLinkedQueue<>();
    private final boolean fix;
    private final Path root;

    private Tidy(boolean fix, Path root) {
        this.fix = fix;
        this.root = root;
    }

    public static void main(String[] args) throws Exception {
        final Tidy tidy = new Tidy(args[0].equals("fix"), Path.of(args[1]).toAbsolutePath().normalize());
        final List<Path> sources;
        try (Stream<Path> files = Files.walk(tidy.root)) {
            sources =
                    files.filter(p -> p.toString().endsWith(".java"))
                            .filter(p -> p.toString().contains("/src/"))
                            .filter(p -> !p.toString().contains("/target/") && !p.toString().contains("/src/generated/"))
                            .sorted()
                            .toList();
        }
        final Formatter formatter =
                new Formatter(JavaFormatterOptions.builder().style(JavaFormatterOptions.Style.AOSP).build());
        final KnownTexts known = new KnownTexts(tidy.root.resolve("target/tidy-known-texts"));
        sources.parallelStream().forEach(source -> tidy.format(formatter, known, source));
        known.write();
        final List<Path> main = sources.stream().filter(p -> p.toString().contains("/src/main/")).toList();
        if (!main.isEmpty()) {
            tidy.javadoc(main);
        }
        for (Path source : main) {
            tidy.forbidden(source);
        }
        tidy.complaints.stream().sorted().forEach(System.err::println);
        System.out.println("tidy: " + sources.size() + " sources, " + tidy.complaints.size() + " complaints");
        if (!tidy.complaints.isEmpty()) {
            System.exit(1);
        }
    }

    private void format(Formatter formatter, KnownTexts known, Path source) {
        try {
            final String text = Files.readString(source);
            if (known.isFormatted(text)) {
                return;
            }
            final String formatted = stable(formatter, text);
            if (formatted.equals(text)) {
                known.formatted(text);
                return;
            }
            if (fix) {
                Files.writeString(source, formatted);
            } else {
                complain(source, firstDifference(text, formatted), "format differs; run: mvn -q -N verify -Dtidy.mode=fix");
            }
        } catch (FormatterException e) {
            complain(source, 1, "cannot be formatted: " + e.getMessage());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The formatter settles long string concatenations in a second pass only. */
    private static String stable(Formatter formatter, String text) throws FormatterException {
        String formatted = formatter.formatSourceAndFixImports(text);
        for (int pass = 1; pass < MAX_PASSES; pass++) {
            final String again = formatter.formatSourceAndFixImports(formatted);
            if (again.equals(formatted)) {
                break;
            }
            formatted = again;
        }
        return formatted;
    }

    private static int firstDifference(String a, String b) {
        int line = 1;
        for (int i = 0; i < Math.min(a.length(), b.length()) && a.charAt(i) == b.charAt(i); i++) {
            if (a.charAt(i) == '\n') {
                line++;
            }
        }
        return line;
    }

    private void javadoc(List<Path> sources) throws IOException {
        try (var files = JAVAC.getStandardFileManager(null, null, null)) {
            final JavacTask task =
                    (JavacTask)
                            JAVAC.getTask(
                                    null, files, d -> {}, List.of("--release", "25", "-proc:none"), null,
                                    files.getJavaFileObjectsFromPaths(sources));
            final DocTrees docs = DocTrees.instance(task);
            for (CompilationUnitTree unit : task.parse()) {
                new JavadocScanner(docs, unit).scan(unit, null);
            }
        }
    }

    /** Visits public types and the public methods of public types; an override inherits its contract. */
    private final class JavadocScanner extends TreePathScanner<Void, Void> {
        private final DocTrees docs;
        private final CompilationUnitTree unit;

        JavadocScanner(DocTrees docs, CompilationUnitTree unit) {
            this.docs = docs;
            this.unit = unit;
        }

        @Override
        public Void visitClass(ClassTree node, Void unused) {
            final boolean nestedInInterface =
                    getCurrentPath().getParentPath().getLeaf() instanceof ClassTree parent
                            && parent.getKind() == Tree.Kind.INTERFACE;
            if (!node.getModifiers().getFlags().contains(Modifier.PUBLIC) && !nestedInInterface) {
                return null;
            }
            require(node, "type " + node.getSimpleName());
            return super.visitClass(node, unused);
        }

        @Override
        public Void visitMethod(MethodTree node, Void unused) {
            final boolean inInterface =
                    getCurrentPath().getParentPath().getLeaf() instanceof ClassTree parent
                            && (parent.getKind() == Tree.Kind.INTERFACE || parent.getKind() == Tree.Kind.ANNOTATION_TYPE);
            final ModifiersTree modifiers = node.getModifiers();
            final boolean override =
                    modifiers.getAnnotations().stream().anyMatch(a -> a.getAnnotationType().toString().equals("Override"));
            final boolean visible =
                    modifiers.getFlags().contains(Modifier.PUBLIC)
                            || (inInterface && !modifiers.getFlags().contains(Modifier.PRIVATE));
            final boolean constructor = node.getName().contentEquals("<init>");
            if (visible && !override && !(constructor && node.getParameters().isEmpty())) {
                require(node, "method " + node.getName());
            }
            return null;
        }

        private void require(Tree node, String what) {
            final DocCommentTree comment = docs.getDocCommentTree(getCurrentPath());
            final long position = docs.getSourcePositions().getStartPosition(unit, node);
            if (comment == null && position >= 0) {
                complain(
                        Path.of(unit.getSourceFile().toUri()),
                        (int) unit.getLineMap().getLineNumber(position),
                        "no Javadoc on public " + what);
            }
        }
    }

    private void forbidden(Path source) throws IOException {
        final List<String> lines = Files.readAllLines(source);
        for (int i = 0; i < lines.size(); i++) {
            for (Forbidden rule : FORBIDDEN) {
                final boolean allowed = !rule.allowedIn().isEmpty() && source.endsWith(rule.allowedIn());
                if (!allowed && rule.call().matcher(lines.get(i)).find()) {
                    complain(source, i + 1, "forbidden call " + rule.call() + ": " + rule.why());
                }
            }
        }
    }

    private void complain(Path source, int line, String what) {
        complaints.add(root.relativize(source.toAbsolutePath()) + ":" + line + ": " + what);
    }

    /** Texts that this formatter, on this JDK, leaves as they are, by digest: most are the same the next time. */
    private static final class KnownTexts {
        private final Path file;
        private final String formatter = System.getProperty("java.class.path") + System.getProperty("java.vm.version");
        private final Set<String> before = new HashSet<>();
        private final Set<String> now = ConcurrentHashMap.newKeySet();

        KnownTexts(Path file) throws IOException {
            this.file = file;
            if (Files.exists(file)) {
                before.addAll(Files.readAllLines(file));
            }
        }

        boolean isFormatted(String text) {
            final String digest = digest(text);
            if (!before.contains(digest)) {
                return false;
            }
            now.add(digest);
            return true;
        }

        void formatted(String text) {
            now.add(digest(text));
        }

        void write() throws IOException {
            Files.createDirectories(file.getParent());
            Files.write(file, now.stream().sorted().toList());
        }

        private String digest(String text) {
            try {
                final MessageDigest digest = MessageDigest.getInstance("SHA-256");
                digest.update(formatter.getBytes(StandardCharsets.UTF_8));
                return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
