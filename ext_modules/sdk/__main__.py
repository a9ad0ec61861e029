"""`python3 -m ext_modules.sdk serve MODULE.py --socket PATH`: the program that a sandbox starts.

`… check MODULE.py` serves a module here, without a sandbox, and checks it against the contract; `… check --target
unix:PATH` checks a module that is already being served, in any language.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ext_modules.sdk.conformance import Finding


def main() -> int:
    parser = argparse.ArgumentParser(prog="ext_modules.sdk", description="Serves an ext-module.")
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="serve a module on a unix socket")
    serving.add_argument("module", type=Path, help="the module's Python file")
    serving.add_argument("--socket", type=Path, required=True, help="the unix socket to make")
    checking = commands.add_parser("check", help="check a module against the contract")
    checking.add_argument("module", type=Path, nargs="?", help="the module's Python file, or its folder")
    checking.add_argument("--target", help="where it is served already (unix:PATH)")
    checking.add_argument("--json", action="store_true")
    describing = commands.add_parser("describe", help="print what a module says of itself, as JSON")
    describing.add_argument("module", type=Path, help="the module's Python file")
    options = parser.parse_args()
    if options.command == "check":
        if (options.module is None) == (options.target is None):
            parser.error("check takes either a module's file or --target")
        path: Path | None = options.module
        if path is not None and path.is_dir():
            path /= "module.py"
        return asyncio.run(_check(path, options.target, as_json=options.json))

    from ext_modules.sdk import egress, viewer

    if options.command == "serve" and viewer.is_viewer():  # before there is a second thread
        viewer.give_up(way_out=egress.SOCKET.is_socket())
    from ext_modules.sdk import loader, server

    if options.command == "describe":
        print(server.described(loader.load(options.module)))
        return 0
    asyncio.run(server.serve(loader.load(options.module), options.socket))
    return 0


async def _check(module: Path | None, target: str | None, *, as_json: bool) -> int:
    """Check and print the findings. Return 1 if the module breaks the contract."""
    from ext_modules.sdk import conformance

    if target is not None:
        findings = await conformance.check(target)
    else:
        assert module is not None
        findings = await _check_here(module)

    if as_json:
        print(json.dumps([asdict(finding) for finding in findings]), end="")
    else:
        print(conformance.table(findings), end="")
    return 0 if conformance.passed(findings) else 1


async def _check_here(path: Path) -> list[Finding]:
    """Serve the module at `path` in this process, and check it."""
    from ext_modules.sdk import conformance, loader, server

    module = loader.load(path)
    with tempfile.TemporaryDirectory(prefix="iact-check-") as folder:
        os.environ["IACT_WORKSPACE"] = folder
        async with module.running():
            serving, _ = await server.start(module, Path(folder) / "check.sock")
            try:
                return await conformance.check(f"unix:{folder}/check.sock")
            finally:
                await serving.stop(grace=0.5)


if __name__ == "__main__":
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Functions that run in threads can't be stopped and must not keep the process alive.
    os._exit(status)
