"""A Ray cluster of several nodes on this machine, for experiments and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from iact.core.errors import UsageError

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError as error:
    raise UsageError(
        f"Ray is not installed ({error.name} is missing). Install it with: pip install 'iact[cluster]'; or leave it out: "
        "--engine static."
    ) from error

_STORE_BYTES = 80 << 20
"""A node's memory for Ray objects; we store none."""


@contextmanager
def local_cluster(nodes: int) -> Iterator[str]:
    """Run this many nodes until the context exits. Yields the cluster's address."""
    head = {
        "num_cpus": 1,
        "object_store_memory": _STORE_BYTES,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)
        yield str(cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
