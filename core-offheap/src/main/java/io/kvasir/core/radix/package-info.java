/**
 * A radix tree over local hashes that one thread writes and any number of threads read without
 * locks. The index of prefix blocks and the tables of requests stand on it; it knows neither.
 *
 * <h2>Words</h2>
 *
 * <ul>
 *   <li><em>run</em>: an edge of the tree, up to 512 local hashes in one contiguous array. A
 *       <em>split</em> makes two headers over the same array, a <em>join</em> undoes it.
 *   <li><em>holder</em>: a worker slot that holds leading blocks of a run, with the number of them
 *       (the <em>prefix length</em>) and 32 bits of the owner's. Few holders are a list, many are
 *       bits in a map.
 *   <li><em>end</em>: what the children of a run name as their parent. It is a number apart from
 *       the run, so that a split need not write to the children.
 *   <li><em>page</em>: memory outside the header that a run's word leads to: its array, its list or
 *       map of holders, its table of children.
 *   <li><em>version</em>: {@code [structure:32 | pages:32]}, a counter for each of the two reasons
 *       why what was read of a run must not be believed.
 * </ul>
 *
 * <h2>How a run is read</h2>
 *
 * <p>{@link io.kvasir.core.radix.RadixMatcher} reads optimistically, as with a seqlock, but no
 * version is ever "being written": a writer that is stopped anywhere stops no reader.
 *
 * <ol>
 *   <li>version, acquire: all that follows is read after it;
 *   <li>parent, acquire, and depth: the run continues the path only if it names the end that its
 *       parent had, and begins at the depth reached;
 *   <li>end, extent, hashes, holders, in any order and possibly torn among each other; each word
 *       for itself is whole;
 *   <li>load-load fence, then the version again. If it is the same, all of it was true together. If
 *       not, what was credited is taken back and the run is read again, at most 64 times; then the
 *       rest of the prompt counts as not held.
 * </ol>
 *
 * <p>A run that is the wrong one, because its header was freed and used again, has another parent
 * or depth, or another version by the end. The version of the parent is compared as well, before
 * the absence of a child is believed. A path that changed is read again from the root, at most 8
 * times. So every answer is bounded in time and never says more than some slot has held; what it
 * can miss is an undercount.
 *
 * <h2>Order of writes</h2>
 *
 * <p>No word needs a new version as long as each of its values was true at some moment. Hence:
 *
 * <ul>
 *   <li><em>append</em>: hashes, then the extent (release). A reader sees the old length or all the
 *       hashes of the new one.
 *   <li><em>add a holder</em>: the entry, then the count (release); in a map, the prefix length,
 *       then the bit (release). <em>Change a holder</em>: one word.
 *   <li><em>partial becomes full</em> in a map: set the full bit (release), then clear the partial
 *       bit (release). The reader reads partial (acquire) before full: if it misses the slot in the
 *       first word, it finds it in the second.
 *   <li><em>full becomes partial</em>: set the partial bit, then a new version, then clear the full
 *       bit. A reader that found the slot in neither word read an old version.
 *   <li><em>add a child</em>: array, extent, depth, then the parent (release), then the entry in
 *       the table of the parent (release).
 *   <li><em>give a page back</em>: the word that leads to the new page (release), a new version,
 *       then the page to the arena. The version is a release store followed by a store-store fence:
 *       whatever the memory is used for next becomes visible after it.
 *   <li><em>split</em>: the lower half is complete before a reader can reach it; then the extent of
 *       the upper half, its version, its new end, the parent of the lower half, its link. The
 *       children keep naming the end that they named: it belongs to the lower half now.
 *   <li><em>join</em>: the version first, then extent, end and link of the upper half, then the
 *       lower header is freed.
 *   <li><em>free a header</em>: parent = 0, the version, then another end. Headers stay headers, so
 *       a late reader reads a header and not other data. Versions only grow.
 * </ul>
 *
 * <h2>Threads</h2>
 *
 * <p>One writer thread at a time per tree calls everything but {@code match} and the gauges. The
 * readers share nothing but the memory; each brings its own {@link
 * io.kvasir.core.radix.OverlapScores}.
 */
package io.kvasir.core.radix;
