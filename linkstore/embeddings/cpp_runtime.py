"""One C++ runtime for all native libraries of the process."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

_RUNTIME: Final = "libstdc++.so.6"
_USEARCH: Final = "usearch.compiled"
_A_SYMBOL: Final = "_ZNSt6locale7classicEv"


def share_cpp_runtime() -> None:
    """Load the system's C++ runtime so that every library uses it, if called before usearch is imported.

    usearch's wheels for Linux carry a copy of the runtime whose symbols are visible to the whole
    process. A library loaded later (ONNX Runtime, PyTorch) takes some symbols from that copy and the rest
    from the system's runtime, and the process dies (the same clash: pytorch/pytorch#109923). Once the
    system's runtime is global, all libraries use it. Do nothing if there is no such runtime, or too late.
    """
    if sys.platform == "linux" and _USEARCH not in sys.modules:
        with suppress(OSError):  # not installed: then nothing that is loaded later needs it either
            ctypes.CDLL(_RUNTIME, mode=ctypes.RTLD_GLOBAL)


def cpp_runtime_clashes(package: str) -> bool:
    """Say whether loading a package with native code now would end the process."""
    return (
        sys.platform == "linux"
        and _USEARCH in sys.modules
        and package not in sys.modules
        and not hasattr(ctypes.CDLL(None), _A_SYMBOL)
    )
