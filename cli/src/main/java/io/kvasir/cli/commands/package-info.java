/**
 * The commands of {@code kvasir}, one class each, with what only they need: options, the log of
 * {@code serve}, the check against an engine's own numbers. {@link io.kvasir.cli.Kvasir} knows
 * them; they know {@code load}, {@code demo} and {@code console}, and not each other but for groups
 * ({@code bench}, {@code nixl}).
 */
package io.kvasir.cli.commands;
