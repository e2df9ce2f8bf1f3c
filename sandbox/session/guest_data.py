"""Base of all models of answers of the guest, with their bounds and their check; and the request that gets one."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.errors import ProtocolViolation
from sandbox.transport.connection import OnProgress

Long = Annotated[str, Field(max_length=1 << 20)]
Short = Annotated[str, Field(max_length=1 << 14)]
Number = Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_M = TypeVar("_M", bound=BaseModel)


class GuestData(BaseModel):
    """Checked data of the guest, which may be of another build: unknown keys are dropped, known ones checked."""

    # Built at its first use, in 4 ms at most: the server starts without 60 of them.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def validate(model: type[_M], data: Any) -> _M:
    """Convert `data` from the guest into `model`.

    Raises:
        ProtocolViolation: it does not match.
    """
    try:
        return model.model_validate(data)
    except ValidationError as exc:
        fields = ", ".join(sorted({".".join(map(str, error["loc"])) for error in exc.errors()})[:5])
        raise ProtocolViolation(
            f"The sandbox answered with malformed data ({model.__name__}: {fields})."
        ) from exc


class Request(Protocol):
    """Callable that sends a request to the guest (`Session.request`)."""

    def __call__(
        self,
        op: str,
        args: dict[str, Any] | None = None,
        payload: bytes = b"",
        *,
        timeout_s: float = 30.0,
        on_progress: OnProgress | None = None,
    ) -> Awaitable[tuple[dict[str, Any], bytes]]: ...
