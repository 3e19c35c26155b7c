/**
 * Native libraries through the foreign function API, without a compiler at run time and without
 * JNI.
 *
 * <p>Two layers: {@code NixlFunction} and {@code NixlCapi} know symbols and signatures of NIXL's C
 * ABI; the public classes own handles, check every status and never let a native address out. A
 * library that is missing is an answer, not an exception: {@link io.kvasir.panama.NixlProbe} says
 * what was tried, why it failed and what to change. Native access is needed: {@code
 * --enable-native-access=ALL-UNNAMED} on the class path.
 *
 * <p>Knows the JDK only.
 */
package io.kvasir.panama;
