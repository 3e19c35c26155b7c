"""Parts of an old router (0.7.1) over a JetStream; ends with the input. NATS_SERVER and ETCD_ENDPOINTS name the servers.

Arguments: what to do, namespace, component, then of
  publish   number of stores: publishes that many single blocks, removes every second one
  index     nothing: its index follows the stream; a line with a token is answered with the scores of a block of it
  snapshot  number of stores: publishes as above, while a router of its own saves what it has
"""
import asyncio
import json
import os
import sys

from dynamo._core import DistributedRuntime, KvEventPublisher, KvIndexer, KvPushRouter, KvRouterConfig

BLOCK_SIZE = 4


async def line():
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


def publish(component, stores):
    publisher = KvEventPublisher(component, 0, BLOCK_SIZE)
    event = 0
    for i in range(1, stores + 1):
        event += 1
        publisher.publish_stored(event, [i] * BLOCK_SIZE, [BLOCK_SIZE], [i], 0, None)
        if i % 2 == 0:
            event += 1
            publisher.publish_removed(event, [i])
    return publisher


async def generate(request, context=None):
    yield {}


async def component_of(store, static):
    runtime = DistributedRuntime(asyncio.get_running_loop(), store, static)
    component = runtime.namespace(sys.argv[2]).component(sys.argv[3])
    await component.create_service()
    return component


async def main():
    what = sys.argv[1]
    if what == "publish":
        kept = publish(await component_of("mem", True), int(sys.argv[4]))
        print("published", flush=True)
        await line()
    elif what == "index":
        index = KvIndexer(await component_of("etcd", False), BLOCK_SIZE)
        print("ready", flush=True)
        while token := (await line()).strip():
            matches = await index.find_matches_for_request([int(token)] * BLOCK_SIZE, 0)
            print("scores", json.dumps([[worker, score] for (worker, _), score in matches.scores.items()]), flush=True)
    else:
        component = await component_of("etcd", False)
        endpoint = component.endpoint("generate")
        serving = asyncio.ensure_future(endpoint.serve_endpoint(generate))
        await asyncio.sleep(1)
        router = KvPushRouter(endpoint, BLOCK_SIZE, KvRouterConfig(router_snapshot_threshold=10))
        kept = publish(component, int(sys.argv[4]))
        while not (events := json.loads(await router.dump_events())):
            await asyncio.sleep(0.1)
        print("worker", events[0]["worker_id"], flush=True)
        await line()
    os._exit(0)


asyncio.run(main())
