"""A publisher over libzmq: prints its addresses, then obeys lines of stdin.

publish HEX | lose HEX | raw HEX (a message of one frame) | connect ADDRESS TOPIC | quit
"""
import struct
import sys
import threading

import zmq

context = zmq.Context()
events = context.socket(zmq.PUB)
events.setsockopt(zmq.LINGER, 0)
events.setsockopt(zmq.HEARTBEAT_IVL, 500)
events.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5000)
port = events.bind_to_random_port("tcp://127.0.0.1")
if len(sys.argv) > 1:
    events.bind(sys.argv[1])
router = context.socket(zmq.ROUTER)
router.setsockopt(zmq.LINGER, 0)
replay = router.bind_to_random_port("tcp://127.0.0.1")
kept = []
topic = b"kv-events"


def answer():
    while True:
        try:
            identity, *_, number = router.recv_multipart()
        except zmq.ZMQError:
            return
        for i in range(struct.unpack(">q", number)[0], len(kept)):
            router.send_multipart([identity, b"", topic, struct.pack(">q", i), kept[i]])
        router.send_multipart([identity, b"", b"", struct.pack(">q", -1), b""])


threading.Thread(target=answer, daemon=True).start()
print(f"tcp://127.0.0.1:{port} tcp://127.0.0.1:{replay} {zmq.zmq_version()}", flush=True)
for line in sys.stdin:
    command, *words = line.split()
    if command in ("publish", "lose"):
        kept.append(bytes.fromhex(words[0]))
        if command == "publish":
            events.send_multipart([topic, struct.pack(">q", len(kept) - 1), kept[-1]])
    elif command == "raw":
        events.send(bytes.fromhex(words[0]))
    elif command == "connect":
        topic = words[1].encode()
        events.connect(words[0])
    elif command == "quit":
        break
sys.exit(0)
