"""Error with which a request is refused."""

from __future__ import annotations


class GuestError(Exception):
    """A refusal that the host shows as it is.

    `code` is one of `protocol.codes.ERROR_CODES`. `message` describes the failure, with the value; `hint` the
    next step.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def as_dict(self) -> dict:
        """The `error` of a reply."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


def out_of_memory(operation: str) -> GuestError:
    """Refusal of an operation that needs more memory than there is."""
    return GuestError(
        "conflict",
        "The sandbox has too little memory for `%s`%s." % (operation, _describe_limit()),
        "Ask for less at once, remove files that nobody needs, or start the server with a larger `--memory`.",
    )


def _describe_limit() -> str:
    try:
        import resource
    except (ImportError, MemoryError):  # Windows has none
        return ""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return "" if limit == resource.RLIM_INFINITY else ": a process may use %d MiB" % (limit >> 20)
