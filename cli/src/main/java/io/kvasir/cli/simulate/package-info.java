/**
 * {@code kvasir simulate}: routing policies beside each other, over a fleet of simulated engines in
 * virtual time.
 */
package io.kvasir.cli.simulate;
