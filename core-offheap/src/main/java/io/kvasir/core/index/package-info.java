/** Which worker holds which prefix block: one writer, any number of optimistic readers. */
package io.kvasir.core.index;
