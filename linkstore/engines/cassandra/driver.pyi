# The driver has no types: to type checkers all of it is Any, but for what is inherited here.

from collections.abc import Sequence
from io import BytesIO
from typing import Any, ClassVar, Self

class BoundStatement:
    def __init__(self, prepared_statement: Any) -> None: ...
    def bind(self, values: Sequence[Any]) -> Self: ...
    @property
    def routing_key(self) -> bytes | None: ...

class ProtocolHandler:
    message_types_by_opcode: ClassVar[dict[int, type]]

class ResultRows:
    opcode: ClassVar[int]
    @classmethod
    def read_type(cls, f: BytesIO, user_type_map: Any) -> Any: ...

class RetryPolicy:
    RETHROW: ClassVar[int]
    RETRY_NEXT_HOST: ClassVar[int]

def __getattr__(name: str) -> Any: ...
