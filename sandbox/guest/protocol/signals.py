"""Signals by which the supervisor reaches a debugger. The real-time ones are the program's as well; it is kept from these.

And the one by which an engine ends a supervisor.
"""

from __future__ import annotations

import signal

HAS_REAL_TIME = hasattr(signal, "SIGRTMIN")
INTERRUPT = int(signal.SIGRTMIN) + 6 if HAS_REAL_TIME else int(signal.SIGUSR2)
"""Break into the program."""
UPDATE = int(signal.SIGRTMIN) + 9 if HAS_REAL_TIME else INTERRUPT
"""Look at what was sent. A signal of its own where there is one: Python may run one handler for several signals, which reads all that was
sent, and the next one must not break in because nothing is left."""
DUMP = int(signal.SIGRTMIN) + 7 if HAS_REAL_TIME else None
"""Write the stacks of all threads to the pipe of faulthandler; None on systems without real-time signals."""
SHOW = int(signal.SIGRTMIN) + 8 if HAS_REAL_TIME else None
"""Show the output that a test runner holds back; None on systems without real-time signals."""
STOP = 37
"""End the supervisor where it is the first process, which gets no SIGTERM. SIGRTMIN+3 to engines, as for systemd; musl counts otherwise."""
