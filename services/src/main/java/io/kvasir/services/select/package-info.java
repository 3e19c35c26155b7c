/**
 * The selection service as a program of its own: which worker a prompt should go to, by what
 * workers hold and how loaded they are, and reservations that count as load. Made of the index of
 * {@code services.indexer}, the tracker of {@code services.slots} and the router's cost.
 */
package io.kvasir.services.select;
