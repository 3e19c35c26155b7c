/** Objects that outlive a router, in JetStream's object store. */
package io.kvasir.nats.state;
