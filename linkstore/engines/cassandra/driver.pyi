# The driver has no types: to type checkers all of it is Any.

from typing import Any

def __getattr__(name: str) -> Any: ...
