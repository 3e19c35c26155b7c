"""Applies events in JSON, one a line, to an index; prints what the index then holds, one event a line."""
import sys

from dynamo._core import RadixTree

tree = RadixTree()
for line in sys.stdin:
    tree.apply_event(7, line.strip().encode())
for event in tree.dump_tree_as_events():
    print("holds", event)
