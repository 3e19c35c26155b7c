/**
 * What a command says to its user: exit codes, failures of one line, tables, JSON, and the end by
 * ctrl-C. Knows no command.
 */
package io.kvasir.cli.console;
