"""peer.py MODULE NAME: a plain NIXL agent as the peer of a JVM; what TransferPeer.java is, and an initiator as well.

Prints where its pool of blocks lies and its metadata, reads the other side's, then does what
messages ask for until its input ends. A message is a letter, a version and pairs of blocks:

  W  blocks were written here: check them; (block here, block that it was written as)
  R  read blocks of the other side and check them; (block here, block there)
  S  write blocks to the other side; (block there, block here)

and is answered by "OK version" or "BAD version block". The answer to S goes with the transfer.
"""

import base64
import importlib
import os
import sys
import threading
import time

import numpy

nixl = importlib.import_module(sys.argv[1])  # nixl_cu12 or nixl_cu13

BLOCKS = 256
BLOCK_LENGTH = 16 << 10
WORDS = BLOCK_LENGTH // 8
PATIENCE_SECONDS = 20
POLL_SECONDS = 0.00002
MASK = (1 << 64) - 1
OFFSETS = numpy.arange(0, BLOCK_LENGTH, 8, dtype=numpy.uint64)


def pattern(version, block):
    """What Pattern.java writes into a block."""
    first = (version * 31 + block) * 0x9E3779B97F4A7C15 & MASK
    mixed = numpy.uint64(first) + OFFSETS
    return mixed ^ (mixed >> numpy.uint64(29))


class Peer:
    def __init__(self, name, out):
        # pages of their own, so that the region begins on one
        memory = numpy.zeros(BLOCKS * WORDS + 512, dtype=numpy.uint64)
        skip = -memory.ctypes.data % 4096 // 8
        self.pool = memory[skip : skip + BLOCKS * WORDS].reshape(BLOCKS, WORDS)
        for block in range(BLOCKS):
            self.pool[block] = pattern(0, block)
        self.agent = nixl.nixl_agent(name, nixl.nixl_agent_config(backends=["UCX"]))
        base = self.pool.ctypes.data
        self.agent.register_memory([(base, self.pool.nbytes, 0, "")], "DRAM")
        metadata = base64.b64encode(self.agent.get_agent_metadata()).decode("ascii")
        out.write(f"{base}\n{metadata}\n")
        out.flush()
        self.other = self.agent.add_remote_agent(base64.b64decode(sys.stdin.readline()))
        if isinstance(self.other, bytes):
            self.other = self.other.decode("ascii")
        self.here = self.prepare("", base)
        self.there = self.prepare(self.other, int(sys.stdin.readline()))

    def prepare(self, whose, base):
        blocks = [(base + block * BLOCK_LENGTH, BLOCK_LENGTH, 0) for block in range(BLOCKS)]
        return self.agent.prep_xfer_dlist(whose, blocks, "DRAM")

    def move(self, operation, here, there, notification=b""):
        request = self.agent.make_prepped_xfer(
            operation, self.here, here, self.there, there, notification
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        state = self.agent.transfer(request)
        while state == "PROC" and time.monotonic() < deadline:
            state = self.agent.check_xfer_state(request)
        self.agent.release_xfer_handle(request)
        if state != "DONE":
            raise RuntimeError(f"{operation} of {len(here)} blocks: {state}")

    def first_wrong(self, version, pairs):
        for block, written_as in pairs:
            if not numpy.array_equal(self.pool[block], pattern(version, written_as)):
                return block
        return None

    def answer(self, message):
        words = message.split(" ")
        kind, version = words[0], int(words[1])
        numbers = [int(word) for word in words[2:]]
        pairs = list(zip(numbers[::2], numbers[1::2]))
        good = f"OK {version}".encode("ascii")
        if kind == "S":
            for there, here in pairs:
                self.pool[here] = pattern(version, there)
            self.move("WRITE", numbers[1::2], numbers[::2], good)
            return
        if kind == "R":
            self.move("READ", numbers[::2], numbers[1::2])
        wrong = self.first_wrong(version, pairs)
        self.agent.send_notif(
            self.other, good if wrong is None else f"BAD {version} block {wrong}".encode("ascii")
        )

    def run(self):
        ended = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
        while not ended.is_set():
            messages = self.agent.get_new_notifs()
            for of_agent in messages.values():
                for message in of_agent:
                    self.answer(message.decode("ascii"))
            if not messages:
                time.sleep(POLL_SECONDS)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library logs to where it likes
    Peer(sys.argv[2], out).run()


main()
