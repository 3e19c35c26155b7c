/**
 * The C library through the foreign function API: memory on large pages, the environment, C
 * strings, and the loader with its own words for a failure ({@link
 * io.kvasir.panama.libc.DynamicLoader}). The ground of the bindings: the packages for NIXL and CUDA
 * call it, and it calls none of them.
 *
 * <p>Everything here is static and has no state, so any thread may call it, save {@link
 * io.kvasir.panama.libc.LibC#setEnvironment}, which no other native thread may race.
 *
 * <p>Knows the JDK only.
 */
package io.kvasir.panama.libc;
