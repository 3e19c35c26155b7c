/**
 * What workers are busy with, as a service: callers say which requests they have sent where, and
 * ask how loaded each worker is.
 *
 * <p>Threads: requests, each its own, and one that ends what has lasted too long. All change and
 * read under the tracker's lock, so an answer is of one moment.
 */
package io.kvasir.services.slots;
