/** Stores of state that need nothing but this machine. */
package io.kvasir.router.state;
