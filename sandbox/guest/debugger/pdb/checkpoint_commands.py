"""The commands `checkpoint`, `restart N`, `info checkpoints` and `delete checkpoint N`, which pdb lacks."""

# pdb's own members are not part of its declared interface.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from ..control.checkpoints import Refused
from .prompt import flush
from .watch_commands import WatchingPdb

_COMMANDS = ("checkpoint", "info_checkpoints", "delete_checkpoint")
_NOT_RESTORED = "What is outside of the process (files, sockets) is not restored"


class CheckpointPdb(WatchingPdb):
    """pdb with checkpoints (gdb's words)."""

    def do_checkpoint(self, arg):
        """checkpoint

        Keep the program as it is at this stop: `restart 1` goes back here,
        with the values of now, and the checkpoints made later are gone.
        Breakpoints stay as they are then. What is outside of the process
        (files, sockets, other processes) is not restored. It is made by
        fork: the program must have one thread and no child processes, and
        its process id changes. Checkpoints end with the run.

        `info checkpoints` lists them, `delete checkpoint 1` forgets one.
        """
        session = self.session
        if not session.may_fork:
            self.error("Unable to make a checkpoint in a child process of the program")
            return
        flush()
        try:
            checkpoint, message = session.checkpoints.take(self._here())
        except Refused as exc:
            self.error(str(exc))
            return
        if message is None:
            self.message(f"Checkpoint {checkpoint.number}: {checkpoint.text}")
        else:
            session.come_back(self, message)
            self.message(f"Back at checkpoint {checkpoint.number}. {_NOT_RESTORED}.")

    def go_back(self, arg):
        """Go back to the checkpoint that `restart` was given. False if there is none with this number."""
        number = int(arg) if arg.isdigit() and len(arg) < 10 else 0
        checkpoint = self.session.checkpoints.find(number)
        if checkpoint is None:
            return False
        try:
            self.session.checkpoints.go_back(checkpoint, self.session.prompt.hand_over())
        except Refused as exc:
            self.error(str(exc))
        return True

    def do_info_checkpoints(self, arg):
        """info checkpoints

        List the checkpoints of this run.
        """
        for one in self.session.checkpoints.all():
            self.message(f"{one.number}: {one.text}")
        if not self.session.checkpoints.all():
            self.message("No checkpoints")

    def do_delete_checkpoint(self, arg):
        """delete checkpoint number

        Forget a checkpoint.
        """
        number = int(arg) if arg.isdigit() and len(arg) < 10 else 0
        if self.session.checkpoints.find(number) is None:
            self.error(f"No checkpoint {arg}")
        else:
            self.session.checkpoints.delete(number)

    def _here(self):
        frame = self.stack[self.stopped_index][0]
        path = self.session.relative(frame.f_code.co_filename)
        return f"{path}:{frame.f_lineno} in {frame.f_code.co_name}"

    def parseline(self, line):
        words = line.split()
        if words[:2] == ["info", "checkpoints"] and len(words) == 2:
            return "info_checkpoints", "", line
        if words[:2] == ["delete", "checkpoint"] and len(words) == 3:
            return "delete_checkpoint", words[2], line
        command, arg, line = WatchingPdb.parseline(self, line)
        if command == "checkpoint" and arg:
            return None, None, line  # a statement about a variable of that name
        return command, arg, line

    def get_names(self):
        # `help` lists the commands of this Python's pdb.
        return [name for name in WatchingPdb.get_names(self) if name[3:] not in _COMMANDS]
