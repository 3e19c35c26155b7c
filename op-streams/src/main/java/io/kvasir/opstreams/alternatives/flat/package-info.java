/** The flat table of sequence hashes, the loser of the two designs of the index. */
package io.kvasir.opstreams.alternatives.flat;
