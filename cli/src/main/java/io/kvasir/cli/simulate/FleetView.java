package io.kvasir.cli.simulate;

import io.kvasir.router.Worker;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.sim.SteppedEngine;

import java.util.List;

/** What a policy may see of a fleet beside what the router shows. Read on the run's thread. */
interface FleetView {
    /** The workers, in the order of their ids, which count from 0. */
    List<Worker> workers();

    /** The engine of a worker as it is now: what no router knows. */
    SteppedEngine engine(CandidateWorker worker);

    /** Requests that have arrived before this one. */
    int arrivals();

    /** Time since the start of the run. */
    double seconds();
}
