"""The `bash` tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sandbox.session.session import Session
from tools import _session_uris as documents
from tools._advice import hidden_tools
from tools._text import describe_signal, fence, mark_gap, without_overwritten
from tools._tool import Environment, Tool
from tools._truncation import Answer, Hint, Omitted, Truncatable

_BACKGROUND = (
    "\nnote: What it had left running in the background was ended with it. To talk to a server that is debugged, have one"
    " entry point start both: `python server.py & sleep 2; curl …`."
)

_CLOSED = 128 + 13
"""Exit code of a part of a pipe that SIGPIPE has ended: the next one has read enough."""


class BashAnswer(Answer):
    """Result of a command, with stdout and stderr together."""

    exit_code: int | None
    output: Annotated[str, Truncatable("more head", "Filter it. Or write it to a file and `view` that.")]
    timed_out: bool = False
    timeout_s: float | None = None
    """The limit that ended it."""
    killed: int = 0
    pipe: list[int] = Field(default_factory=list[int])
    """Exit codes of the parts of the command's last pipe, if one before the last has failed."""
    signal: str | None = None

    def gap(self, field: str, text: str, head: str, tail: str) -> str:
        before = text[: len(text) - len(tail)]
        if not all(each.endswith("\n") for each in (head, before) if each):
            return super().gap(field, text, head, tail)
        first, last = _missing_lines(text, head, tail)
        lines = f"lines {first}-{last}" if first < last else f"line {first}"
        return f"[… {lines} of the output left out …]"


async def bash(
    session: Session,
    command: Annotated[
        str, Field(min_length=1, description='Shell command, e.g. "python -m pytest -q | tail".')
    ],
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="Limit, 30 by default.")] = 30,
    cwd: Annotated[str | None, Field(description='Folder, e.g. "docs".')] = None,
    env: Annotated[Environment | None, Field(description='Further environment, e.g. ["DEBUG=1"].')] = None,
) -> BashAnswer:
    """Run a shell command in the sandbox. Stateless: cd, variables and background programs end with the call.

    Over 4,000 characters the middle is cut. No .git.
    """
    to_file = "view" in hidden_tools.get()
    done = await session.run(command, timeout_s=timeout_s, cwd=cwd, env=env, to_file=to_file, with_pipe=True)
    answer = BashAnswer(
        exit_code=done.exit_code,
        output=without_overwritten(mark_gap(done.output, done.gap, done.omitted)),
        timed_out=done.timed_out,
        timeout_s=timeout_s if done.timed_out else None,
        killed=done.killed,
        pipe=done.pipe if any(code not in (0, _CLOSED) for code in done.pipe[:-1]) else [],
        signal=done.signal,
    ).with_omitted(Omitted(field="output", count=done.omitted, unit="bytes", hint="They were not kept."))
    # The reason of a failure comes last; what was asked for comes first. Of several commands in one, the last matters.
    failed = done.exit_code != 0 or done.timed_out
    answer = answer.keeping(output="more tail" if failed else "more head")
    if done.kept is None or (to_file and done.kept_in is None):
        return answer
    return answer.with_hints(output=_rest(session, done.kept, done.kept_in, answer.output))


def _rest(session: Session, number: int, file: str | None, output: str) -> Hint:
    """Advice for reading the part of a saved output that is not shown: in a file of the sandbox, else with `view`."""
    uri = documents.uri_of(session, f"{documents.OUTPUT}/{number}")

    def hint(head: str, tail: str) -> str:
        first, last = _missing_lines(output, head, tail)
        if file is not None and first == last and head[-1:] not in ("", "\n"):
            return f"Show them: `sed -n {first}p {file} | cut -c {len(head) - head.rfind(chr(10))}-`."
        if file is not None:
            return f"Show them: `sed -n {first},{last}p {file}`."
        # A line that was cut is shown once more. Long ones are several there.
        start, end = (
            len(documents.lines_of(text)) for text in (head + "x", output[: len(output) - len(tail)])
        )
        return f'Show them: view(path="{uri}", start={start}, end={end}).'

    return hint


def _missing_lines(output: str, head: str, tail: str) -> tuple[int, int]:
    """The first and the last line of an output of which not all is in its `head` or `tail`."""
    before = output[: len(output) - len(tail)]
    return head.count("\n") + 1, before.removesuffix("\n").count("\n") + 1


def render(answer: BashAnswer) -> str:
    """Format the end of the command, then its output."""
    if answer.timed_out:
        end = (
            f"ended at its limit of {answer.timeout_s or 0:g} s, with all that it started; give a higher timeout_s"
            " (up to 3600) if it needs longer"
        )
    else:
        parts = f" (parts of the pipe: {', '.join(map(str, answer.pipe))})" if answer.pipe else ""
        end = describe_signal(answer.signal) if answer.signal else f"exit code {answer.exit_code}{parts}"
    text = fence(f"{end}, output:", answer.output) if answer.output else f"{end}, no output"
    return text + _BACKGROUND if answer.killed and not answer.timed_out else text


TOOL = Tool(
    bash,
    render,
    title="Run a shell command",
    group="run",
    destructive=True,
    slow=True,
    aliases={"timeout": "timeout_s"},
)
