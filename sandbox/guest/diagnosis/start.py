"""Starts to observe this process, as a job asks: lines of each test, the values of one test, or calls."""

from __future__ import annotations

import json
import os

from ..debugger.isolation.shadowed_modules import unload
from ..debugger.isolation.user_code import Project
from . import recording, runners, spectrum
from .comparison import observer as comparison
from .job import Job
from .mutation import observer as mutation
from .tracing import observer as tracing


def begin(folder, loaded):
    """Install the observer of the job in `folder`. `loaded` names the modules that were there before us."""
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        settings = json.load(file)
    job = Job(folder, settings, Project(os.path.realpath(settings["root"])))
    observer = _OBSERVERS[settings["mode"]](job)
    runners.install(observer)
    # The folder of the program is not on `sys.path` yet.
    unload(loaded, [os.getcwd()])


_OBSERVERS = {
    "spectrum": spectrum.SpectrumObserver,
    "recording": recording.RecordingObserver,
    "comparison": comparison.ComparisonObserver,
    "mutation": mutation.MutationObserver,
    "trace": tracing.TraceObserver,
}
