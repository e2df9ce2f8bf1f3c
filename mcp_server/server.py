"""The MCP server: its lists, and the handling of calls."""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import principal_components
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool

from mcp_server import __version__, completions, profiles, prompts, resources, rewrite_count
from mcp_server.connection_options import ConnectionOptions, current
from mcp_server.errors import answer_safely, read_safely
from mcp_server.instructions import instructions
from mcp_server.observability import logs
from mcp_server.observability.receipts import current_receipt
from mcp_server.profiles import Profile, Shown
from mcp_server.redaction.redactor import Redactor
from mcp_server.sessions.named import NamedSessions, handle_of
from mcp_server.sessions.own_sessions import OwnersSessions
from mcp_server.sessions.pending import WAIT, PendingCalls, has_schemas, time_left
from mcp_server.sessions.refusals import CHANGED_ANEW, OPENED_ANEW
from mcp_server.sessions.store import SessionStore
from mcp_server.sessions.undelivered import UndeliveredAnswers
from mcp_server.trajectories.recent import Ongoing, Trajectories
from sandbox.errors import InvalidArgument, PdboxError, ProtocolViolation, SandboxLost
from sandbox.session.session import Session
from tools._advice import hidden_tools, leave_out
from tools._text import show_hidden
from tools._tool import SESSION_ID, Call, Report, Tool
from tools._truncation import Answer, data_of, truncate

if TYPE_CHECKING:
    from mcp_server.auth.authentication import Access
    from mcp_server.settings import AnswerForm
    from mcp_server.trajectories.recorder import Origin


MAX_INSTRUCTION = 12_000
"""Characters of a task's text in the instructions of the server."""


class PdboxServer(MCPServer[Any]):
    """The SDK's server, with our own schemas, argument checks and results in place of its own."""

    def __init__(self, store: SessionStore, access: Access | None, defaults: ConnectionOptions) -> None:
        """`access`: authentication of HTTP requests, if any. `defaults`: options of connections that choose none."""
        super().__init__(
            "pdbox",
            title="pdbox",
            version=__version__,
            subscriptions=False,
            middleware=[self._instruct],
            auth=access and access.settings,
            token_verifier=access and access.verifier,
        )
        self._defaults = defaults
        self._store = store
        self._place = store.requests.defaults.in_place
        self._shown()  # the operator's profile may be one that there is not
        self._trajectories = Trajectories()
        self._pending = PendingCalls(store)
        self._undelivered = UndeliveredAnswers()
        self.named = NamedSessions(store)
        self.completion()(self._complete)

    async def list_tools(self) -> list[ListedTool]:
        """The tools of the client's profile, always in the same order; with output schemas where answers have data."""
        self._store.warm()
        return listing(self._shown(), data=has_schemas(current(self._defaults)))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult:
        """Call a tool. Failures are results too (`isError`); only cancellation is raised."""
        redactor = self._store.redactor()
        ongoing, answer = Ongoing(name, arguments, caller()), None
        shown = self._shown()
        hidden_tools.set(shown.hidden)
        # What is no tool's name may be anything, and the log needs none of it.
        logged = name if shown.is_name(name) else "unknown tool"
        try:
            with logs.record_call(logged, _request_id(context), ongoing.owner, redactor):
                async with _report_progress(shown.tools.get(name), context, redactor) as report:
                    # Failures become results before they reach the task group in there, which would wrap them.
                    answer = await self._pending.answer(
                        ongoing,
                        lambda: answer_safely(
                            logged, self._call(ongoing, shown, report, redactor, _meta(context)), redactor
                        ),
                        lambda: report.message,
                        current(self._defaults),
                    )
                    return answer
        finally:
            ongoing.ended = time.perf_counter()
            _after_answer(partial(self._note, ongoing, answer, context, redactor))

    def _note(
        self,
        ongoing: Ongoing,
        answer: CallToolResult | None,
        context: Context[Any, Any] | None,
        redactor: Redactor,
    ) -> None:
        self._trajectories.note(ongoing, answer, redactor)
        if (recorder := self._store.recorder) is not None:
            own = self._store.list_held(ongoing.owner)
            recorder.note(ongoing, answer, _origin(context, current(self._defaults)), own, redactor)

    async def list_resources(self) -> list[Resource]:
        """List the resources of the caller's sessions that are open here."""
        own, handle = self._store.list_held(caller()), self._own_handle(caller())
        return resources.list_resources([one for one in own if handle in (None, one.handle)])

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """List the URI templates of resources, always the same."""
        return resources.list_templates()

    async def read_resource(
        self, uri: object, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """A resource, or a page of it.

        Raises:
            ResourceError: it can't be read; with what to do next.
        """
        work = resources.contents(
            self._store, caller(), self._trajectories, str(uri), self._own_handle(caller())
        )
        return await read_safely(work)

    async def list_prompts(self) -> list[Prompt]:
        """The prompts that need no other tools than the client sees."""
        return prompts.list_prompts(self._shown())

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult:
        """A prompt with its arguments filled in.

        Raises:
            MCPError: unknown prompt or argument.
        """
        return prompts.fill_in(name, arguments or {}, self._shown())

    async def _complete(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        known = (context.arguments if context is not None else None) or {}
        if (handle := self._own_handle(caller())) is not None:
            known = {**known, SESSION_ID: handle}
        return await completions.complete(
            self._store, caller(), self._shown(), ref, argument.name, argument.value, known
        )

    def _shown(self) -> Shown:
        options = current(self._defaults)
        return profiles.show(
            options.profile,
            is_bound=options.session is not None or bool(self._place),
            needs_opening=not self._store.opens_by_itself,
            answers_early=options.answer_within_s is not None,
        )

    def _own_handle(self, owner: str) -> str | None:
        """The handle of the connection's own session, if it has one."""
        name = current(self._defaults).session
        return None if name is None else handle_of(owner, name)

    async def _instruct(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Add the instructions to the results that have some: each connection may have its own tools."""
        result = await call_next(ctx)
        if ctx.method in _WITH_INSTRUCTIONS and isinstance(result, dict):
            shown = self._shown()
            result["instructions"] = instructions(shown, self._place) + _task_text(
                await self._read_instruction(), shown
            )
        return result

    async def _read_instruction(self) -> str:
        """Text of the task of the connection, or of the server; empty if there is none."""
        try:
            return await self._store.requests.read_instruction(current(self._defaults).task)
        except PdboxError:
            return ""  # the first call tells why it can't be opened

    async def _call(
        self,
        ongoing: Ongoing,
        shown: Shown,
        report: Report,
        redactor: Redactor,
        meta: Mapping[str, Any] | None,
    ) -> CallToolResult:
        tool, parsed = self._parse(ongoing, shown, redactor)
        options = current(self._defaults)
        given = parsed.pop(SESSION_ID, None)
        if shown.is_bound and given is not None:
            raise InvalidArgument(
                f"`{tool.name}` takes no session_id here: this connection has its own session."
            )
        ongoing.handle = self._own_handle(ongoing.owner) or given
        if (
            tool.name == WAIT
            and (earlier := await self._pending.answer_earlier(ongoing, parsed, options)) is not None
        ):
            return earlier
        self._pending.refuse_second(tool, ongoing)
        limit = tool.limit(parsed)
        if isinstance(given := parsed.get("env"), Mapping):
            redactor.learn(cast(Mapping[str, str], given))
        if tool.takes_source:
            redactor.refuse_masks(parsed)
        answer = await self._run(tool, parsed, report, ongoing, shown.profile, meta)

        def finish() -> CallToolResult:
            # Before the cut: of half a secret nobody could tell any more what it is.
            ongoing.answer, made = result(tool, redactor.answer(answer), limit, options.answers)
            return made

        # What a program prints is searched for secrets: of much of it in a thread, which lets other calls through.
        return await anyio.to_thread.run_sync(finish) if _is_long(answer) else finish()

    def _parse(self, ongoing: Ongoing, shown: Shown, redactor: Redactor) -> tuple[Tool, dict[str, Any]]:
        """The tool of a call and its arguments. The names in an error are masked by the secrets of all sessions of its owner.

        Raises:
            NotFound: there is no such tool.
            InvalidArgument: unknown, missing or invalid arguments.
        """
        try:
            tool = shown.find(ongoing.tool)
            return tool, tool.parse(ongoing.arguments)
        except PdboxError:
            for session in self._store.list_held(ongoing.owner):
                redactor.learn(session.metadata.env)
                redactor.learn(session.sandbox.environ)
            # Masked before the error shortens them: of half a secret nobody could tell any more what it is.
            ongoing.tool = redactor.text(ongoing.tool[:_MAX_NAME])
            ongoing.arguments = {
                redactor.text(name[:_MAX_NAME]): value for name, value in ongoing.arguments.items()
            }
            shown.find(ongoing.tool).parse(ongoing.arguments)
            raise

    async def _run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        report: Report,
        ongoing: Ongoing,
        profile: Profile,
        meta: Mapping[str, Any] | None,
    ) -> Answer:
        sessions = OwnersSessions(self._store, ongoing)
        if not tool.needs_session:
            return await tool.run(Call(sessions, None, report, time_left(ongoing)), arguments)
        await self._pending.wait_until_open(ongoing)
        is_new = self._opens_anew(ongoing)
        refused = OPENED_ANEW if is_new and tool.continues(arguments) else ""
        opened = CHANGED_ANEW if is_new and tool.takes_source and not self._place else refused
        ongoing.session = session = await self._find_session(ongoing, report)
        call = Call(sessions, session, report, time_left(ongoing))
        logs.note_session(session)
        rewrite_count.check(profile, tool, session)

        async def work() -> Answer:
            try:
                answer = await self._in_session(ongoing, session, tool.run(call, arguments))
            except PdboxError as exc:
                exc.hint = f"{exc.hint} {refused}".strip()
                raise
            await rewrite_count.note(profile, answer, session)
            notice, session.notice = f"{opened} {session.notice}".strip(), ""
            return answer.model_copy(update={"notice": notice}) if notice else answer

        if tool.read_only:
            return await work()
        return await self._undelivered.run_once(session, tool.name, ongoing.arguments, meta, work)

    def _opens_anew(self, ongoing: Ongoing) -> bool:
        unnamed = ongoing.handle is None and current(self._defaults).session is None
        return unnamed and self._store.opens_anew(ongoing.owner)

    async def _find_session(self, ongoing: Ongoing, report: Report) -> Session:
        options = current(self._defaults)
        if options.session is not None:
            request = options.request()
            return await self.named.get(ongoing.owner, options.session, request, report, ongoing.limit_s)
        return await self._store.get(ongoing.owner, ongoing.handle, report, ongoing.limit_s)

    async def _in_session(self, ongoing: Ongoing, session: Session, work: Awaitable[Answer]) -> Answer:
        try:
            with session.expiry.running():
                return await work
        except (SandboxLost, ProtocolViolation) as exc:
            named = current(self._defaults).session is not None
            reopens = named or (ongoing.handle is None and self._store.default_session)
            await self._store.check(ongoing.owner, session, exc, reopens=reopens)
            raise


def build_server(
    store: SessionStore, access: Access | None = None, defaults: ConnectionOptions | None = None
) -> PdboxServer:
    """The server for an open `store`."""
    return PdboxServer(store, access, defaults or ConnectionOptions())


def _task_text(text: str, shown: Shown) -> str:
    """Text of a task for the end of the instructions; empty if there is none."""
    if len(text) > MAX_INSTRUCTION:
        more = ": `start_session` gives them" if shown.has("start_session") else ""
        text = f"{text[:MAX_INSTRUCTION]}\n[… {len(text) - MAX_INSTRUCTION:,} characters left out{more} …]"
    return f"\nYour task\n{text}\n" if text else ""


@lru_cache(maxsize=64)
def listing(shown: Shown, *, data: bool) -> list[ListedTool]:
    """The tools as a client sees them; `data`: answers have structured data."""
    return [_describe_tool(tool, shown, data=data) for tool in shown.tools.values()]


def describe_tools(profile: str, *, data: bool) -> list[dict[str, Any]]:
    """The tools of `profile` as JSON, as a client that opens its own sessions sees them."""
    shown = profiles.show(profile, is_bound=False, needs_opening=False, answers_early=False)
    tools = listing(shown, data=data)
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def _describe_tool(tool: Tool, shown: Shown, *, data: bool) -> ListedTool:
    """`tool` as clients see it; `data`: its answers have structured data, which its output schema describes."""
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=leave_out(tool.description, shown.hidden),
        input_schema=tool.schema_without(shown.hidden, _NO_HANDLE if shown.is_bound else frozenset()),
        output_schema=tool.output_schema if data else None,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


_NO_HANDLE = frozenset({SESSION_ID})
_WITH_INSTRUCTIONS = ("initialize", "server/discover")
ELSEWHERE = "The answer is in structuredContent."


def result(tool: Tool, answer: Answer, limit: int, form: AnswerForm) -> tuple[Answer, CallToolResult]:
    """`answer` cut to `limit`, and as the wire has it, in the form that the connection asks for."""
    answer, text = truncate(answer, tool.render, limit, text=form != "structured", data=form != "text")
    # MCP recommends a copy of the data as text, for clients that know no data. Who asks for data alone knows it, and a copy
    # would cost a model the same once more. But `content` is not left empty: some clients take that for a failed call.
    content = TextContent(type="text", text=ELSEWHERE if form == "structured" else text)
    data = None if form == "text" else data_of(answer)
    return answer, CallToolResult(content=[content], structured_content=data)


def principal() -> str | None:
    """The principal of the request's token; None on stdio and without authentication."""
    token = get_access_token()
    if token is None:
        return None
    client, issuer, subject = principal_components(token)
    # A subject is unique only within its issuer, and must not be taken for a client of the same name.
    return json.dumps([issuer, "subject", subject] if subject else [issuer, "client", client])


def caller() -> str:
    """The owner of the sessions that this request may reach."""
    return owner_of(principal())


@lru_cache(maxsize=1024)
def owner_of(principal: str | None = None) -> str:
    """An owner of sessions: a hash of the user that this server runs as, and of the principal."""
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    whole = f"pdbox user {user}" if principal is None else f"pdbox user {user} principal {principal}"
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _after_answer(work: Callable[[], None]) -> None:
    """Do `work` once the answer of the current call is written: the client need not wait for it."""
    receipt = current_receipt.get()
    if receipt is not None:
        receipt.when_written(work)
    else:
        asyncio.get_running_loop().call_soon(work)


def _is_long(answer: Answer) -> bool:
    # By `vars`: to iterate over a model takes ten times as long.
    parts = [
        cast(str | list[Any], value) for value in vars(answer).values() if isinstance(value, (str, list))
    ]
    return sum(map(_length, parts)) > _LONG


def _length(part: str | list[Any]) -> int:
    if isinstance(part, str):
        return len(part)
    items = part[:_LONG]
    return sum(len(item) if isinstance(item, str) else _ITEM for item in items) + len(items)


def _request_id(context: Context[Any, Any] | None) -> str | None:
    request_id = None if context is None else context.request_context.request_id
    return None if request_id is None else str(request_id)


def _meta(context: Context[Any, Any] | None) -> Mapping[str, Any] | None:
    return None if context is None else context.request_context.meta


def _origin(context: Context[Any, Any] | None, options: ConnectionOptions) -> Origin:
    from mcp_server.trajectories.recorder import Origin  # a server that records nothing starts without it

    if context is None:
        return Origin.of(None, "", None, options)
    request = context.request_context
    introduced = request.session.client_params
    client = introduced.client_info if introduced is not None else None
    return Origin.of(client, request.protocol_version, request.meta, options)


_MAX_NAME = 4_000
"""Characters of a tool's or an argument's name that are searched for secrets; errors show far fewer."""
_LONG = 8_000
"""Characters of an answer that is dealt with in a thread."""
_ITEM = 20
"""Characters that take as long as an item of a list: it is measured several times where the answer has to be cut."""
HEARTBEAT_S = 0.5
"""Interval of progress notifications; each one restarts the timeout of a client that waits for a reply."""


class _ProgressBuffer:
    """Buffers the progress of a call until it can be sent: tools report without waiting."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.message = ""
        self.done = 0.0
        self.total: float | None = None
        self.news = anyio.Event()

    def __call__(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self.message = show_hidden(self._redactor.text(message))
        self.done = max(self.done, done or 0.0)
        self.total = total if total is not None else self.total
        self.news.set()


@asynccontextmanager
async def _report_progress(
    tool: Tool | None, context: Context[Any, Any] | None, redactor: Redactor
) -> AsyncGenerator[_ProgressBuffer]:
    progress = _ProgressBuffer(redactor)
    if tool is None or not tool.slow or context is None or not _wants_progress(context):
        yield progress
        return
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send_progress, progress, context)
        yield progress
        tasks.cancel_scope.cancel()


def _wants_progress(context: Context[Any, Any]) -> bool:
    meta = context.request_context.meta
    return meta is not None and meta.get("progress_token") is not None


async def _send_progress(progress: _ProgressBuffer, context: Context[Any, Any]) -> None:
    """One notification for each piece of news, at least one each half second; `progress` always grows, as MCP wants it."""
    sent = 0.0
    while True:
        with anyio.move_on_after(HEARTBEAT_S):
            await progress.news.wait()
        progress.news = anyio.Event()
        sent = max(progress.done, sent + 0.001)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await context.report_progress(sent, progress.total, progress.message or "working")
