package io.kvasir.cli;

import io.kvasir.cli.commands.BenchCommand;
import io.kvasir.cli.commands.CommonOptions;
import io.kvasir.cli.commands.DemoCommand;
import io.kvasir.cli.commands.DoctorCommand;
import io.kvasir.cli.commands.ExplainCommand;
import io.kvasir.cli.commands.HashCommand;
import io.kvasir.cli.commands.IndexerCommand;
import io.kvasir.cli.commands.NixlCommand;
import io.kvasir.cli.commands.RegisterCommand;
import io.kvasir.cli.commands.RelayCommand;
import io.kvasir.cli.commands.ReplayCommand;
import io.kvasir.cli.commands.SelectCommand;
import io.kvasir.cli.commands.ServeCommand;
import io.kvasir.cli.commands.SettingsCommand;
import io.kvasir.cli.commands.SharedCommand;
import io.kvasir.cli.commands.SimCommand;
import io.kvasir.cli.commands.SimulateCommand;
import io.kvasir.cli.commands.SlotsCommand;
import io.kvasir.cli.commands.StatCommand;
import io.kvasir.cli.commands.StatusCommand;
import io.kvasir.cli.commands.TopCommand;
import io.kvasir.cli.commands.TrainCommand;
import io.kvasir.cli.commands.TruthCommand;
import io.kvasir.cli.commands.VersionProvider;
import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.Undecoded;
import io.kvasir.core.memory.RefusedThread;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.List;

/** The {@code kvasir} command: parses the command line, runs one sub-command, maps errors. */
@Command(
        name = "kvasir",
        description = {
            "KV-cache-aware router for LLM inference engines.",
            "",
            "Sends each prompt to the engine that already holds most of its prefix and has room for"
                    + " the rest, and shows what that is worth.",
            ""
        },
        versionProvider = VersionProvider.class,
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "Start here:",
            "  kvasir demo                         simulated engines, three routing modes, one"
                    + " table",
            "  kvasir serve --worker http://127.0.0.1:9000,events=tcp://127.0.0.1:5557 --model m"
                    + " --tokenizer DIR",
            "  kvasir COMMAND --help",
            "",
            "Exit codes: 0 done; 1 done, and the answer is no (a check or requests failed); 2 wrong"
                    + " command line; 3 could not work (port in use, file missing); 130/143 ended"
                    + " by ctrl-C/kill."
        })
public final class Kvasir implements Runnable {
    private static final int HELP_WIDTH = 100;

    private static final String LOG = "KVASIR_LOG";
    private static final String SERVE = "serve";

    private static final List<Class<?>> COMMANDS =
            List.of(
                    ServeCommand.class,
                    DemoCommand.class,
                    ReplayCommand.class,
                    SimulateCommand.class,
                    SimCommand.class,
                    IndexerCommand.class,
                    SlotsCommand.class,
                    DoctorCommand.class,
                    ExplainCommand.class,
                    StatusCommand.class,
                    TopCommand.class,
                    SettingsCommand.class,
                    SelectCommand.class,
                    StatCommand.class,
                    SharedCommand.class,
                    HashCommand.class,
                    TruthCommand.class,
                    RelayCommand.class,
                    RegisterCommand.class,
                    BenchCommand.class,
                    NixlCommand.class,
                    TrainCommand.class);

    @Mixin private CommonOptions common;

    @Option(
            names = {"-V", "--version"},
            versionHelp = true,
            description = "Show the version and end.")
    boolean version;

    private Kvasir() {}

    /**
     * Runs the command line and ends the JVM with its exit code.
     *
     * @param args words of the command line
     */
    public static void main(String[] args) {
        Undecoded.problem(List.of(args), System.getenv(), Undecoded.charset())
                .ifPresent(Kvasir::refuse);
        final String[] words = withHelpAsOption(args);
        System.exit(commandLine(words).execute(words));
    }

    /** {@code help serve} is {@code serve --help}. */
    static String[] withHelpAsOption(String... args) {
        if (args.length == 0 || !args[0].equals("help")) {
            return args;
        }
        final String[] words = Arrays.copyOfRange(args, 1, args.length + 1);
        words[args.length - 1] = "--help";
        return words;
    }

    private static void refuse(String problem) {
        System.err.println("kvasir: " + problem);
        System.exit(ExitCode.USAGE);
    }

    /**
     * The command line with its error rules; tests set their own streams on it. Where the first
     * word is a command it knows that one only: to read the options of all takes half a second of a
     * JVM that begins. The run that makes the AOT cache knows all, so that the cache does.
     *
     * @param args words that it will be asked to run; none for a command line that knows all
     */
    static CommandLine commandLine(String... args) {
        final CommandLine kvasir = new CommandLine(new Kvasir());
        final String first = args.length == 0 ? "" : args[0];
        final List<Class<?>> named =
                COMMANDS.stream()
                        .filter(command -> name(command).equals(first))
                        .filter(command -> command != TrainCommand.class)
                        .toList();
        for (Class<?> command : named.isEmpty() ? COMMANDS : named) {
            kvasir.addSubcommand(new CommandLine(command)); // its modelTransformer is run so
        }
        LowerCaseValues.register(kvasir);
        return kvasir.setOut(Terminal.writer(System.out))
                .setUsageHelpWidth(HELP_WIDTH)
                .setUsageHelpAutoWidth(true)
                .setExecutionStrategy(Kvasir::run)
                .setParameterExceptionHandler(Kvasir::wrongCommandLine)
                .setExecutionExceptionHandler(Kvasir::failed);
    }

    private static String name(Class<?> command) {
        return command.getAnnotation(Command.class).name();
    }

    @Override
    public void run() {
        throw common.wrong("no command given");
    }

    /** What all commands end with, once they could work: results that nothing took are none. */
    private static int run(CommandLine.ParseResult parsed) {
        final CommandLine last = parsed.asCommandLineList().getLast();
        if (CommonOptions.isDebug(parsed)) {
            System.setProperty(LOG, "DEBUG"); // read when the first logger is made
        } else if (!last.getCommandName().equals(SERVE)) { // which has a setting of it
            final String problem = logProblemOrNull(System.getenv(LOG));
            if (problem != null) {
                last.getErr().println(last.getCommandSpec().qualifiedName() + ": " + problem);
                last.getErr().flush();
                return ExitCode.USAGE;
            }
        }
        try {
            final int exitCode = new CommandLine.RunLast().execute(parsed);
            Terminal.checkTaken(last.getOut());
            return exitCode;
        } catch (CommandFailure | Error e) { // picocli hands on exceptions of commands alone
            return failed(e, last, parsed);
        }
    }

    private static String logProblemOrNull(String levelOrNull) {
        if (levelOrNull == null || levelOrNull.isBlank()) {
            return null;
        }
        try {
            GatewaySettings.LOG_LEVEL.parse(levelOrNull);
            return null;
        } catch (IllegalArgumentException e) { // its message begins with the setting's name
            return LOG + e.getMessage().substring(GatewaySettings.LOG_LEVEL.name().length());
        }
    }

    private static int wrongCommandLine(ParameterException e, String[] args) {
        final CommandLine command = e.getCommandLine();
        final PrintWriter err = command.getErr();
        final String name = command.getCommandSpec().qualifiedName();
        err.println(name + ": " + UnknownWords.problem(e));
        err.println("see: " + name + " --help");
        err.flush();
        return ExitCode.USAGE;
    }

    private static int failed(Throwable e, CommandLine command, CommandLine.ParseResult parsed) {
        final PrintWriter err = command.getErr();
        err.println(command.getCommandSpec().qualifiedName() + ": " + oneLine(e));
        if (CommonOptions.isDebug(parsed)) {
            printTrace(e, err);
        }
        err.flush();
        return ExitCode.FAILED;
    }

    private static void printTrace(Throwable thrown, PrintWriter err) {
        String prefix = "";
        for (Throwable t = thrown; t != null; t = t.getCause()) {
            err.println(prefix + t);
            prefix = "caused by: ";
            for (StackTraceElement frame : t.getStackTrace()) {
                err.println("    at " + frame);
            }
        }
    }

    /** One line for the user: own messages and refused values as they are, the rest in words. */
    static String oneLine(Throwable thrown) {
        final Throwable e =
                thrown instanceof UncheckedIOException && thrown.getCause() != null
                        ? thrown.getCause()
                        : thrown;
        return switch (e) {
            case CommandFailure own -> own.getMessage();
            case IllegalArgumentException refused -> firstLine(refused);
            case GatewayException refused -> firstLine(refused);
            case NoSuchFileException missing -> "no such file: " + missing.getFile();
            case AccessDeniedException denied -> "no permission: " + denied.getFile();
            case IOException io -> firstLine(io);
            case InterruptedException _ -> "ended before it was done";
            case OutOfMemoryError memory -> {
                final String ofThread = RefusedThread.textOrNull(memory);
                yield ofThread == null
                        ? "no memory: " + firstLine(memory) + "; lower the sizes that options name"
                        : ofThread;
            }
            default ->
                    e.getClass().getSimpleName() + ": " + firstLine(e) + " (--debug shows where)";
        };
    }

    private static String firstLine(Throwable e) {
        final String message = e.getMessage();
        return message == null || message.isBlank()
                ? "no message"
                : message.lines().findFirst().orElseThrow();
    }
}
