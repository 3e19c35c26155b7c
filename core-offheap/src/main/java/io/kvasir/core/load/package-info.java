/** What every worker has been given to do: running requests, their blocks, the load they make. */
package io.kvasir.core.load;
