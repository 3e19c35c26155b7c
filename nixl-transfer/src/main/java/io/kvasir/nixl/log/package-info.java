/**
 * {@link io.kvasir.nixl.log.FaultLog} logs what listeners of the caller throw. Knows no other
 * package of the room.
 */
package io.kvasir.nixl.log;
