/** Event messages: what is in one, and the sockets that publish and replay them. */
package io.kvasir.sim.events;
