/**
 * What engines say of their own load, and which workers are left out for a while because they are
 * full. Reports come from several sources ({@link io.kvasir.router.load.LoadSource}); {@link
 * io.kvasir.router.load.EngineLoads} compares them with what is booked and counts the rest as load
 * of others, until it is older than its time to live. {@link io.kvasir.router.load.BusyMarks} are
 * leases: each ends by itself.
 */
package io.kvasir.router.load;
