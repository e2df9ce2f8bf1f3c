"""Profiles: the tools that a client sees, and the number of rewrites after which the debugger answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated

from pydantic import AfterValidator

from sandbox.errors import InvalidArgument, NotFound
from tools._catalog import catalog
from tools._tool import Tool

DEBUG, REWRITE = "debug", "rewrite"
SESSIONS, DEBUGGER = "sessions", "debug"
"""Groups of tools."""
WAIT = "wait"
_AFTER_REWRITES = re.compile(r"debug_([1-9][0-9]{0,3})")
_MAX_LENGTH = 2000


@dataclass(frozen=True)
class Profile:
    """A choice of tools."""

    text: str
    names: frozenset[str] | None = None
    """Those of an explicit list; None: all, but for the debugger's if it `is_without_debugger`."""
    rewrites: int = 0
    """Rewrites that must have failed before the debugger answers."""

    @property
    def is_without_debugger(self) -> bool:
        """True for `rewrite`."""
        return self.text == REWRITE


@lru_cache(maxsize=256)
def parse(text: str) -> Profile:
    """The profile that `text` names, or lists the tools of.

    Raises:
        InvalidArgument: there is no such profile or tool.
    """
    if text in (DEBUG, REWRITE):
        return Profile(text)
    if found := _AFTER_REWRITES.fullmatch(text):
        return Profile(text, rewrites=int(found[1]))
    listed = text.split(",") if len(text) <= _MAX_LENGTH else []
    names = [name for part in listed if (name := part.strip())]
    unknown = [name for name in names if name not in catalog()]
    if unknown or not names:
        raise InvalidArgument(
            f"There is no profile or tool {(unknown or [text])[0][:100]!r}.",
            f"Profiles: debug, rewrite, debug_N (such as debug_5), or a list of tools: {','.join(catalog())}.",
        )
    return Profile(text, names=frozenset(names))


def _check(text: str) -> str:
    return parse(text).text


ProfileText = Annotated[str, AfterValidator(_check)]
"""The text of a profile that exists."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The tools that one client sees."""

    profile: Profile
    tools: Mapping[str, Tool]
    hidden: frozenset[str]
    """Names of the others."""
    is_bound: bool
    """True if the connection has its own session: `session_id` is no argument of its tools."""

    def find(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            NotFound: the client does not see it, or there is none.
        """
        if (tool := self.tools.get(name)) is not None:
            return tool
        there_are = f"There are: {', '.join(self.tools)}."
        if name not in self.hidden:
            raise NotFound(f"There is no tool {name[:100]!r}.", there_are)
        if self.is_bound and catalog()[name].group == SESSIONS:
            raise NotFound(f"`{name}` is not for this connection, which has its own session.", there_are)
        raise NotFound(f"`{name}` is not a tool of the profile {self.profile.text[:100]!r}.", there_are)

    def is_name(self, name: str) -> bool:
        """True if a tool has that name, whether the client sees it or not."""
        return name in self.tools or name in self.hidden

    def has(self, *names: str) -> bool:
        """True if the client sees all these tools."""
        return all(name in self.tools for name in names)

    @cached_property
    def debugger(self) -> list[str]:
        """Names of the debugger's tools among them."""
        return [name for name, tool in self.tools.items() if tool.group == DEBUGGER]


@lru_cache(maxsize=256)
def show(text: str, *, is_bound: bool, needs_opening: bool, answers_early: bool) -> Shown:
    """The tools of a client, in the order of the catalog.

    Args:
        text: its profile.
        is_bound: its connection has its own session, so there are no tools for sessions.
        needs_opening: no call opens a session by itself, so those tools are there, whatever the profile lists.
        answers_early: calls may answer `running`, so `wait` is there, which gives their answers.
    """
    profile = parse(text)

    def is_shown(tool: Tool) -> bool:
        if tool.group == SESSIONS and (is_bound or needs_opening):
            return not is_bound
        if tool.name == WAIT and answers_early:
            return True
        if profile.names is not None:
            return tool.name in profile.names
        return not (profile.is_without_debugger and tool.group == DEBUGGER)

    tools = {name: tool for name, tool in catalog().items() if is_shown(tool)}
    return Shown(profile, tools, frozenset(catalog()).difference(tools), is_bound)
