/**
 * The selection policies that a router brings, and the search for one by name. Of the router's own
 * rooms only: embedders name a policy in the setting {@code selection-policy}.
 */
package io.kvasir.router.policy.builtin;
