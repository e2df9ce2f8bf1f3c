"""The `rewrite` tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sandbox.errors import InvalidArgument, PdboxError, SandboxLost
from sandbox.session.debugger import Breakpoint
from sandbox.session.edits import MAX_EDITS, Edit
from sandbox.session.session import Session
from sandbox.session.workspace import Rewritten
from tools import _evaluation
from tools._advice import advise
from tools._evaluation import EvalAnswer
from tools._patch import shorten
from tools._stop import breakpoint_line
from tools._test_ids import find_words
from tools._text import fence
from tools._tool import Report, TakesEmpty, Tool
from tools._truncation import LIMIT, Answer, Omitted, SourceText, Truncatable, text_of

_OWN_TESTS = ("tests", "eval", "test", "all", "true")
_CLOSING = re.compile(r"\](?=[\s,]|$)")
_TEST = re.compile(r".*(?:::|\.py$|/$)|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$", re.DOTALL)


class EditArgument(BaseModel):
    """One of several edits."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    path: str | None = None
    new_code: str
    start: Annotated[int | None, Field(ge=0)] = None
    end: Annotated[int | None, Field(ge=0)] = None
    old_code: str | None = None


class RewrittenFile(BaseModel):
    """One of several changed files."""

    path: str
    created: bool = False
    syntax_error: str | None = None


class RewriteAnswer(Answer):
    """Result of a change; `breakpoints` are those that moved, `run` is the answer of `eval`.

    Of several `files`, `path` has all names.
    """

    path: str
    created: bool
    diff: Annotated[str, Truncatable("both", "`view` shows the file."), SourceText(is_patch=True)]
    breakpoints: Annotated[list[Breakpoint], Truncatable("head", "`pdb` with `b` lists all."), SourceText()]
    syntax_error: str | None
    files: list[RewrittenFile] = Field(default_factory=list[RewrittenFile])
    run: EvalAnswer | None = None
    not_run: str = ""


async def rewrite(
    session: Session,
    report: Report,
    path: Annotated[
        str | None, Field(description='File, relative to the repository, e.g. "shop/pricing.py".')
    ] = None,
    new_code: Annotated[
        str | None, TakesEmpty(), Field(description='Text to put in, indentation included; "" deletes.')
    ] = None,
    start: Annotated[
        int | None, TakesEmpty(), Field(ge=0, description="First line to replace, e.g. 6.")
    ] = None,
    end: Annotated[
        int | None,
        TakesEmpty(),
        Field(ge=0, description="Last line to replace, e.g. 8; left out: only `start`."),
    ] = None,
    old_code: Annotated[
        str | None,
        TakesEmpty(),  # an empty text does not mean the whole file
        Field(description="Instead of lines: the exact text to replace; it must occur once in the file."),
    ] = None,
    edits: Annotated[
        list[EditArgument],
        Field(
            max_length=MAX_EDITS,
            description="Several at once instead, all or none; `path` is the one above if left out. Lines are counted"
            " before the call.",
        ),
    ] = [],  # noqa: B006  (pydantic copies it)
    run: Annotated[
        str | None,
        Field(
            description='Then run "tests" (the session\'s), some of them, e.g. "tests/test_shop.py::test_total", or a'
            " command, as `eval` does."
        ),
    ] = None,
) -> RewriteAnswer:
    """Change a file: lines start..end, or the one place of old_code, or (with neither) the whole file, made if missing.

    Answers with the diff, moved breakpoints and any syntax error, and with `run` also like `eval`. A program under `pdb`
    is started again with the new code by the next command that resumes it.
    """
    done = await session.workspace.rewrite(_edits(path, new_code, start, end, old_code, edits))
    session.edited_since_diagnosis = True
    session.debugger.note_breakpoints([point for file in done for point in file.breakpoints])
    answer = _answer(done)
    return await _run(session, report, answer, run) if run else answer


def _edits(
    path: str | None,
    new_code: str | None,
    start: int | None,
    end: int | None,
    old_code: str | None,
    edits: Sequence[EditArgument],
) -> list[Edit]:
    if edits and (new_code or start or end or old_code):
        raise InvalidArgument("Give `edits` or one edit (`new_code` and its place), not both.")
    if not edits:
        if path is None or new_code is None:
            missing = "path" if path is None else "new_code"
            raise InvalidArgument(f"`{missing}` is missing.", "Give `path` and `new_code`, or `edits`.")
        return [Edit(path, new_code, start, end, old_code)]
    if any(edit.path is None and path is None for edit in edits):
        raise InvalidArgument("An edit has no `path`.", "Give one in each edit, or one `path` for all.")
    return [
        Edit(edit.path or path or "", edit.new_code, edit.start, edit.end, edit.old_code) for edit in edits
    ]


def _answer(done: Sequence[Rewritten]) -> RewriteAnswer:
    files = [
        RewrittenFile(path=file.path, created=file.created, syntax_error=file.syntax_error) for file in done
    ]
    errors = [
        f"{file.path}: {file.syntax_error}" if len(done) > 1 else file.syntax_error
        for file in done
        if file.syntax_error
    ]
    return RewriteAnswer(
        path=", ".join(file.path for file in done),
        created=all(file.created for file in done),
        diff="".join(file.diff for file in done),
        breakpoints=[point for file in done for point in file.breakpoints],
        syntax_error="; ".join(errors) or None,
        files=files if len(done) > 1 else [],
    ).with_omitted(
        Omitted(
            field="diff",
            count=sum(file.omitted_bytes for file in done),
            unit="bytes",
            hint="`view` shows the file.",
        )
    )


async def _run(session: Session, report: Report, answer: RewriteAnswer, run: str) -> RewriteAnswer:
    if answer.syntax_error:
        return answer.model_copy(update={"not_run": "the new text has a syntax error."})
    entrypoint, tests = await _what_to_run(session, run)
    limit = LIMIT - min(len(_changes(answer)), LIMIT // 2)
    try:
        evaluation = await _evaluation.evaluate(
            session, report, entrypoint=entrypoint, tests=tests, limit=limit
        )
    except SandboxLost:
        raise
    except PdboxError as exc:  # the files are changed all the same
        return answer.model_copy(update={"not_run": f"{exc.message} {advise(exc.hint)}".rstrip()})
    return answer.model_copy(update={"run": evaluation})


async def _what_to_run(session: Session, run: str) -> tuple[str | None, list[str]]:
    """(entry point, tests) for `eval`: the session's tests, ids of tests and folders with tests, or a command."""
    if run.strip().lower() in _OWN_TESTS:
        return None, []
    words = [run[start:end] for start, _, end in find_words(run, _CLOSING)]
    for word in words:
        if not (_TEST.match(word) or ("/" in word and await _is_folder(session, word))):
            return run, []
    return (None, words) if words else (run, [])


async def _is_folder(session: Session, path: str) -> bool:
    try:
        await session.workspace.list(path, limit=1)
    except SandboxLost:
        raise
    except PdboxError:  # a file, nothing that is there, a command outside of the repository
        return False
    return True


def render(answer: RewriteAnswer) -> str:
    """Format the diff, syntax errors, moved breakpoints, and the test run."""
    parts = [
        _changes(answer),
        f"syntax error in the new text: {answer.syntax_error}" if answer.syntax_error else "",
        *(f"breakpoint {breakpoint_line(point)}" for point in answer.breakpoints),
        f"Nothing was run: {answer.not_run}" if answer.not_run else "",
        text_of(answer.run, _evaluation.render) if answer.run else "",
    ]
    return "\n".join(part for part in parts if part)


def _changes(answer: RewriteAnswer) -> str:
    if not answer.diff and not answer.created and not any(file.created for file in answer.files):
        return f"{answer.path} is as it was: the new text is the same."
    if not answer.files:
        return fence(
            f"{answer.path} {'created' if answer.created else 'rewritten'}:", shorten(answer.diff), "diff"
        )
    names = [f"{file.path} (created)" if file.created else file.path for file in answer.files]
    return fence(f"{len(names)} files rewritten: {', '.join(names)}", _of_files(answer.diff), "diff")


def _of_files(diff: str) -> str:
    """The patches of several files, each shortened below the name of its file."""
    pieces = re.split(r"^--- .*\n\+\+\+ (.*)\n", diff, flags=re.MULTILINE)
    return "\n".join(
        f"+++ {name}\n{shorten(text).rstrip()}" for name, text in zip(pieces[1::2], pieces[2::2], strict=True)
    )


TOOL = Tool(
    rewrite,
    render,
    title="Change a file",
    group="files",
    rank=3,
    destructive=True,
    slow=True,
    runs=lambda arguments: bool(arguments.get("run")),
    takes_source=True,
)
