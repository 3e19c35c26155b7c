/** How much goes into the log of what may happen thousands of times at once. */
package io.kvasir.pipeline.log;
