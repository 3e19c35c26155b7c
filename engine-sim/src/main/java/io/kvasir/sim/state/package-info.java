/** The truth about an engine at one moment, as the records that tests and reports compare with. */
package io.kvasir.sim.state;
