"""One debugged program: the parts of its debugger, which know each other only as far as they are given here."""

# Options are JSON data; some parts get others after they are made.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
from __future__ import annotations

import enum

from ..control.checkpoints import Checkpoints
from ..inspection import stop_report
from ..isolation import user_code
from ..isolation.pristine import os, threading
from ..tracing import settrace
from ..tracing.breakpoints import Table, relative
from ..tracing.source_lines import Resolver
from ..tracing.watching import Watching
from .ends import Ends
from .my_code import MyCode
from .notices import Notices
from .places import Places
from .post_mortem import PostMortem
from .prompt import Activity, Prompt
from .stops import RunnerHooks, Stops
from .thread_debuggers import ThreadDebuggers
from .watches import Watches


class Role(enum.Enum):
    """Relation of this process to the program."""

    PROGRAM = "the program itself"
    CHILD = "a child of the program"
    FORK_OF_EVALUATION = "a child that a command at the prompt has forked"


class Session:
    """Holds the parts of the debugger of this process. All threads share them."""

    def __init__(self, channel, gate, launch):
        options = launch.get("options") or {}
        self.role = Role.CHILD if options.get("child") else Role.PROGRAM
        self.test = None  # id of the running test
        self.set_trace_function = self.dump_again = lambda: None  # for runners that replace ours
        self.channel, self.gate = channel, gate
        self.workdir = os.path.realpath(launch.get("workdir") or os.getcwd())
        self.project = user_code.Project(self.workdir)
        self.table = Table(self.workdir)
        self.activity = Activity()
        self.notices = Notices(channel)
        self.places = Places(Resolver(self.workdir), self.notices, self.relative)
        self.my_code = MyCode(self.project)
        self.report = stop_report.Report(self)
        self.debuggers = ThreadDebuggers(self)
        self.hooks = RunnerHooks(self.notices)
        self.checkpoints = Checkpoints()
        self.watching = Watching(self.project)
        self.watches = Watches(self.watching, self.notices, self.debuggers, gate, channel, self.relative)
        self.prompt = Prompt(
            channel,
            gate,
            self.activity,
            self.notices,
            self.table,
            self.report,
            self.debuggers,
            self.hooks,
            self.watches,
        )
        self.stops = Stops(
            channel,
            gate,
            self.activity,
            self.table,
            self.report,
            self.debuggers,
            self.prompt,
            self.hooks,
            self.notices,
            self.watches,
        )
        self.post_mortem = PostMortem(
            self.stops, self.debuggers, self.notices, self.my_code, self.role is Role.PROGRAM
        )
        self.ends = Ends(
            channel, self.prompt, self.notices, self.my_code, self.relative, options.get("held", False)
        )
        self._begin(launch)

    def _begin(self, launch):
        """Take aliases and breakpoints of the launch, and choose the engine."""
        self.debuggers.make_main()
        aliases = dict(launch.get("aliases") or {})
        self.main_debugger.aliases.update(aliases)
        self.prompt.begin(self.stops, aliases, self.role is not Role.PROGRAM)
        self.table.begin(self.debuggers.main)
        self.table.restore(launch.get("breakpoints") or [])
        if launch.get("next_breakpoint"):
            self.table.reserve(launch["next_breakpoint"])
        self.table.changes()
        self.engine = self.stops.engine = self.watches.engine = settrace.choose(self)
        self.table.rearm = self.engine.rearm

    def debugger(self):
        """Return the debugger of this thread."""
        return self.debuggers.current()

    @property
    def main_debugger(self):
        """The debugger of the main thread."""
        return self.debuggers.main

    @property
    def is_fork_of_evaluation(self):
        """True in a child that a command at the prompt has forked."""
        return self.role is Role.FORK_OF_EVALUATION

    @property
    def may_fork(self):
        """True in the program itself, which may fork for a checkpoint."""
        return self.role is Role.PROGRAM

    def come_back(self, debugger, message):
        """Go on at a checkpoint, with the request and the breakpoints of the process that went back to it."""
        self.channel.take_over(message["received"])
        self.notices.clear()
        self.prompt.take_over(message)
        debugger.stop_reason = "checkpoint"
        self.report.begin(debugger)

    def relative(self, path):
        """Return a path relative to the repository."""
        return relative(path, self.workdir)

    def at_tests(self):
        """Switch to tests: frames of the test runner are folded, and steps stay in the repository."""
        self.my_code.only = True

    def input_wanted(self):
        """Report that the program itself waits for input."""
        activity = self.activity
        if not activity.waiting and activity.evaluating is None and self.role is Role.PROGRAM:
            self.channel.send({"event": "input"})

    def forked(self, connect):
        """Reset the session in a forked child, which has only this thread.

        `connect` as for `Channel.forked`.
        """
        evaluating = self.activity.evaluating == threading.get_ident()
        self.role = Role.FORK_OF_EVALUATION if evaluating else Role.CHILD
        self.channel.forked(connect)
        self.activity.run()
        self.notices.clear()
        self.ends.held, self.post_mortem.enabled = True, False
        self.prompt.forked(evaluating and self.debuggers.known() is not None)
        debugger = self.stops.forked(evaluating)
        self.watches.clear()
        if connect is None:
            self.engine.abandon()
        elif debugger is not None:
            self.engine.resume(debugger, None)
