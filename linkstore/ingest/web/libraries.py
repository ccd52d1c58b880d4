"""The libraries for websites, which the default install lacks. Importing this needs the extra ``web``."""

from __future__ import annotations

from linkstore.errors import MissingExtraError

try:
    from httpcore2 import (
        SOCKET_OPTION,
        URL,
        ConnectError,
        ConnectionPool,
        ConnectTimeout,
        NetworkBackend,
        NetworkError,
        NetworkStream,
        ProtocolError,
        ReadTimeout,
        SyncBackend,
        TimeoutException,
    )
    from httpcore2 import Response as RawResponse
    from protego import Protego
except ImportError as error:
    raise MissingExtraError("indexing a website", "web") from error

__all__ = [
    "ConnectError",
    "ConnectTimeout",
    "ConnectionPool",
    "NetworkBackend",
    "NetworkError",
    "NetworkStream",
    "ProtocolError",
    "Protego",
    "RawResponse",
    "ReadTimeout",
    "SOCKET_OPTION",
    "SyncBackend",
    "TimeoutException",
    "URL",
]
