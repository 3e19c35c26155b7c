/**
 * What all packages of the room throw: {@link io.kvasir.nixl.TransferException}, with a kind of
 * failure and whether trying again may help. Knows none of them.
 */
package io.kvasir.nixl;
