/**
 * NIXL's C ABI through the foreign function API, without a compiler at run time and without JNI.
 *
 * <p>Two layers: {@code NixlFunction}, {@code NixlCapi} and {@code NixlTransferCalls} know symbols
 * and signatures; the public classes own handles, check every status and never let a native address
 * out. A library that is missing is an answer, not an exception: {@link
 * io.kvasir.panama.nixl.NixlProbe} says what was tried, why it failed and what to change. Native
 * access is needed: {@code --enable-native-access=ALL-UNNAMED} on the class path.
 *
 * <p>Words are NIXL's: an <em>agent</em> has <em>backends</em> made of <em>plugins</em>; a
 * <em>descriptor</em> is one (address, length); a <em>request</em> is a transfer that is posted and
 * polled. An agent is used by one thread at a time.
 *
 * <p>Knows {@code io.kvasir.panama.libc} and the JDK.
 */
package io.kvasir.panama.nixl;
