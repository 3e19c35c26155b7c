/** Races of one reader with the one writer of the index, a fresh small index for each. */
package io.kvasir.jcstress;
