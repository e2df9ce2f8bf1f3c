"""Table of the operations that a server may ask a supervisor for.

The handlers are in the supervisor's modules (`OPS`).
"""

from __future__ import annotations


class Operation:
    """Properties of an operation, by which server and supervisor treat a request for it."""

    __slots__ = (
        "answers_when_cancelled",
        "counts_as_use",
        "edits_files",
        "ends_with_connection",
        "gives_lines",
        "kills_program",
        "may_change_files",
        "name",
    )

    def __init__(
        self,
        name: str,
        *,
        counts_as_use: bool = True,
        may_change_files: bool = True,
        by_program: bool = False,
        ends_with_connection: bool = False,
        kills_program: bool = False,
        gives_lines: bool = False,
    ) -> None:
        """`by_program`: acts on the debugged program, which alone changes files and is not cancelled."""
        self.name = name
        self.counts_as_use = counts_as_use
        """The session is not idle while it is served.

        False for a query: listing a session must not prolong it.
        """
        self.may_change_files = may_change_files
        """It waits until the baseline of `files.diff` is taken."""
        self.edits_files = may_change_files and not by_program
        """Files may have changed although the debugged program has not run."""
        self.answers_when_cancelled = by_program
        """A cancelled request for it is answered with the state of the program, not with an error."""
        self.ends_with_connection = ends_with_connection
        """It is cancelled when its connection ends: it served that server alone."""
        self.kills_program = kills_program
        """All it does is to kill the debugged program."""
        self.gives_lines = gives_lines
        """Its argument `lines` is for pdb, and may kill the program as well."""


_ALL = (
    Operation("ping", counts_as_use=False, may_change_files=False),
    Operation("end_if_idle", counts_as_use=False, may_change_files=False),
    Operation("lifetime", may_change_files=False),
    Operation("meta.set", may_change_files=False),
    Operation("load", may_change_files=False),
    Operation("shutdown", may_change_files=False),
    Operation("trust", may_change_files=False),
    Operation("debug.command", by_program=True, gives_lines=True),
    Operation("debug.wait", by_program=True),
    Operation("debug.inspect", by_program=True),
    Operation("debug.kill", by_program=True, kills_program=True),
    Operation("debug.configure", by_program=True, may_change_files=False),
    Operation("debug.state", by_program=True, counts_as_use=False, may_change_files=False),
    Operation("output.read", may_change_files=False),
    Operation("files.read", may_change_files=False),
    Operation("files.texts", may_change_files=False),
    Operation("files.list", may_change_files=False),
    Operation("files.first", may_change_files=False),
    Operation("files.nearest", may_change_files=False),
    Operation("files.search", may_change_files=False),
    Operation("files.diff", may_change_files=False),
    Operation("files.snapshot", may_change_files=False),
    Operation("files.protect", may_change_files=False),
    Operation("files.restore"),
    Operation("files.write"),
    Operation("files.extract"),
    Operation("files.lock"),
    Operation("exec", ends_with_connection=True),
    Operation("eval", ends_with_connection=True),
    Operation("diagnose", ends_with_connection=True),
    Operation("diagnose.command", may_change_files=False),
    Operation("trace", ends_with_connection=True),
)
OPERATIONS = {operation.name: operation for operation in _ALL}
"""Every operation by its name.

Besides them there is `cancel`, which ends another request and is never served itself.
"""
