# The driver has no types: to type checkers all of it is Any, but for what is inherited here.

from collections.abc import Sequence
from typing import Any, ClassVar, Self

class BoundStatement:
    def __init__(self, prepared_statement: Any) -> None: ...
    def bind(self, values: Sequence[Any]) -> Self: ...
    @property
    def routing_key(self) -> bytes | None: ...

class RetryPolicy:
    RETHROW: ClassVar[int]
    RETRY_NEXT_HOST: ClassVar[int]

def __getattr__(name: str) -> Any: ...
