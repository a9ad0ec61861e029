"""llama.cpp's server over one model's file, as a program of its own. It imports nothing of ours.

In this process, loading a model would stop everything else for seconds, since it holds Python's lock meanwhile; and what it
took would be given back to the system only in part.

It reads one line of JSON, writes one, and serves until its standard input ends, as it does when the process that started it
ends, however that happens.
"""

from __future__ import annotations

import json
import os
import sys


def start(asked: dict[str, object]) -> tuple[object, dict[str, str]]:
    """Load the file and serve it. Returns the object that keeps the server alive, and what is told: `address`, or `fault`
    ("package", "library" or "load") with `detail`."""
    try:
        import xllamacpp  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        return None, {"fault": "package", "detail": str(error)}
    except ImportError as error:
        return None, {"fault": "library", "detail": str(error)}

    params = xllamacpp.CommonParams()
    params.model.path = asked["path"]
    params.n_ctx = asked["context"]
    params.n_parallel = 1
    params.n_batch = asked["batch"]
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = asked["threads"]
    params.cache_ram_mib = asked["cache_mib"]
    params.verbosity = 0
    params.api_keys = [asked["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.endpoint_slots = True
    params.slot_save_path = asked["states"]
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, OSError) as error:
        return None, {"fault": "load", "detail": str(error)}
    return server, {"address": str(server.listening_address)}


def main() -> None:
    """Serve until the standard input ends."""
    server, told = start(json.loads(sys.stdin.readline()))
    print(json.dumps(told), flush=True)
    if server is not None:
        sys.stdin.read()
    # Nothing is left to be saved, and its threads need not be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
