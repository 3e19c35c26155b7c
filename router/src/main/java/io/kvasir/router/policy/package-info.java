/**
 * What an embedder may decide about the choice of a worker. A {@link
 * io.kvasir.router.policy.SelectionPolicy} has three parts, each a pure function: which workers may
 * serve ({@link io.kvasir.router.policy.Eligibility}), what each costs ({@link
 * io.kvasir.router.policy.CostModel}), which of the priced ones is taken ({@link
 * io.kvasir.router.policy.Picker}). It comes as an object, or by name from a {@link
 * io.kvasir.router.policy.SelectionPolicyProvider}. A single request adds a cost of its own by a
 * {@link io.kvasir.router.policy.WorkerCost}.
 *
 * <p>A policy sees all candidates as a {@link io.kvasir.router.policy.CandidateView}, one as a
 * {@link io.kvasir.router.policy.Candidate} with the numbers of this decision, and the worker
 * itself as a {@link io.kvasir.router.policy.CandidateWorker}. Nothing here knows the router, which
 * guards the parts and continues where one fails ({@link io.kvasir.router.policy.PolicyFailures}).
 *
 * <p>Called on the threads that route, several at a time: nothing here blocks or allocates. ADR 29.
 */
package io.kvasir.router.policy;
