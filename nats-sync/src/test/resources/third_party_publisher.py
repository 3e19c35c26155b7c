"""Publishes stores of single blocks over NATS, removes every second one; waits for a line to end.

Arguments: namespace.component.endpoint, worker, number of stores. NATS_SERVER names the server.
"""
import asyncio
import os
import sys

from dynamo._core import DistributedRuntime, KvEventPublisher


async def main():
    runtime = DistributedRuntime(asyncio.get_running_loop(), "mem", "tcp", event_plane="nats")
    publisher = KvEventPublisher(
        runtime.endpoint(sys.argv[1]), worker_id=int(sys.argv[2]), kv_block_size=4
    )
    for i in range(1, int(sys.argv[3]) + 1):
        publisher.publish_stored([i, i, i, i], [4], [i])
        if i % 2 == 0:
            publisher.publish_removed([i])
    print("published", flush=True)
    sys.stdin.readline()
    os._exit(0)


asyncio.run(main())
