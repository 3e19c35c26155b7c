/** What goes into the log of what others send, and how much of what happens very often. */
package io.kvasir.pipeline.log;
