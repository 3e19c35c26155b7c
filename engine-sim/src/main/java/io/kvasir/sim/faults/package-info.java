/** Faults that a caller can cause in a running engine. */
package io.kvasir.sim.faults;
