"""Publishes stores of single blocks, removes every second one; waits for a line to end.

Arguments: namespace.component.endpoint, worker, number of stores, then "zmq" for that instead of NATS:
its address is in a file below DYN_FILE_KV then, and a line is waited for first. NATS_SERVER names the server.
"""
import asyncio
import os
import sys

from dynamo._core import DistributedRuntime, KvEventPublisher


async def main():
    over_zmq = sys.argv[4:] == ["zmq"]
    runtime = DistributedRuntime(
        asyncio.get_running_loop(),
        "file" if over_zmq else "mem",
        "tcp",
        event_plane="zmq" if over_zmq else "nats",
    )
    publisher = KvEventPublisher(
        runtime.endpoint(sys.argv[1]), worker_id=int(sys.argv[2]), kv_block_size=4
    )
    if over_zmq:
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    for i in range(1, int(sys.argv[3]) + 1):
        publisher.publish_stored([i, i, i, i], [4], [i])
        if i % 2 == 0:
            publisher.publish_removed([i])
    print("published", flush=True)
    sys.stdin.readline()
    os._exit(0)


asyncio.run(main())
