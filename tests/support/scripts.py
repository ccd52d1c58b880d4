"""What the modules of the explorer's script compute, in Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def evaluate(sources: Path, module: str, call: str) -> Any:
    """The value of an expression with the names that a module of the script exports.

    Args:
        sources: The folder of the sources with their libraries.
        module: Its name, such as ``layout``.
        call: The expression, such as ``layOut([], [], 100, 100)``.
    """
    out = f"{module}.mjs"
    bundle = [f"src/{module}.ts", "--bundle", "--format=esm", f"--outfile={out}"]
    subprocess.run(["npx", "esbuild", *bundle, "--log-level=error"], cwd=sources, check=True, timeout=120)
    # Without a page there is nothing to listen to.
    listen = "globalThis.addEventListener ??= () => undefined;"
    program = (
        f"{listen} Object.assign(globalThis, await import('./{out}')); console.log(JSON.stringify({call}))"
    )
    command = ["node", "--input-type=module"]
    done = subprocess.run(
        command, cwd=sources, check=True, timeout=120, capture_output=True, text=True, input=program
    )
    return json.loads(done.stdout)
