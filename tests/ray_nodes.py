"""A Ray cluster whose nodes fail on command: `python -m tests.ray_nodes`, with one command on each line of its input.

`add`; `kill N`, `freeze N`, `thaw N`: a node by its number, where 0 is the head, with all of its processes. It prints
the cluster's address first, and then a line with the id of the node for each command. The cluster ends with the input.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from ray._private.node import Node
from ray.cluster_utils import Cluster

_OPTIONS = {"num_cpus": 1, "object_store_memory": 80 << 20}


def _below(pid: int) -> list[int]:
    """A process and all processes that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [one for child in task.read_text(encoding="ascii").split() for one in _below(int(child))]
    return found


def _processes(node: Node) -> list[int]:
    """All processes of a node, children first."""
    (raylet,) = node.all_processes["raylet"]
    return _below(raylet.process.pid)


def main() -> None:
    """Create a cluster with a head, and execute the commands."""
    cluster = Cluster(initialize_head=True, head_node_args={**_OPTIONS, "include_dashboard": False})
    assert cluster.head_node is not None
    nodes: list[Node] = [cluster.head_node]
    print(cluster.address, flush=True)
    try:
        for line in sys.stdin:
            what, _, number = line.strip().partition(" ")
            if what == "add":
                nodes.append(cluster.add_node(True, **_OPTIONS))
                number = str(len(nodes) - 1)
            node = nodes[int(number)]
            sent = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}.get(what)
            if sent is not None:
                for pid in _processes(node):
                    os.kill(pid, sent)
            print(node.node_id, flush=True)
    finally:
        for node in nodes:
            for pid in _processes(node):
                os.kill(pid, signal.SIGCONT)
        cluster.shutdown()


if __name__ == "__main__":
    main()
