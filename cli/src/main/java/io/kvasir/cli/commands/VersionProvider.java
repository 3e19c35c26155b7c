package io.kvasir.cli.commands;

import picocli.CommandLine.IVersionProvider;

/** Version of the running build, from the jar's manifest. */
public final class VersionProvider implements IVersionProvider {
    @Override
    public String[] getVersion() {
        final String version = VersionProvider.class.getPackage().getImplementationVersion();
        return new String[] {
            "kvasir " + (version == null ? "(not run from its jar)" : version),
            "Java " + Runtime.version() + ", " + System.getProperty("java.vm.name")
        };
    }
}
