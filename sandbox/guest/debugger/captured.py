"""Shows at a stop what pytest has captured so far. pytest keeps it: its reports are those of any other run."""

from __future__ import annotations

import os


def tees(config):
    """A Tee for stdout and one for stderr, as far as pytest captures them."""
    manager = config.pluginmanager.getplugin("capturemanager")
    capture = getattr(manager, "_global_capturing", None)
    streams = [getattr(capture, name, None) for name in ("out", "err")]
    return [Tee(stream) for stream in streams if _keeps(stream)]


def _keeps(stream):
    """Does this capture keep what it gets to itself? `tee-sys` passes it on."""
    tmpfile = getattr(stream, "tmpfile", None)
    return tmpfile is not None and hasattr(stream, "snap") and type(tmpfile).__name__ != "TeeCaptureIO"


class Tee:
    """Copies what one capture holds to where it would have gone without it."""

    def __init__(self, stream):
        self._stream = stream
        self._shown = 0  # bytes of what the capture holds now
        self._taken = b""  # what pytest took last, without what was shown of it
        self._snap = stream.snap
        stream.snap = self._take

    def _take(self):
        try:
            self._taken = self._content()[self._shown :]
        except (OSError, ValueError):
            self._taken = b""
        self._shown = 0
        return self._snap()

    def show(self):
        """Show what is held and was not shown yet."""
        data = self._content()
        new, self._shown = data[self._shown :], len(data)
        self._write(new)

    def show_taken(self):
        """Show what pytest took last: it belongs to the test that has just failed."""
        new, self._taken = self._taken, b""
        self._write(new)

    def _content(self):
        kept = self._stream.tmpfile
        if hasattr(kept, "getvalue"):  # --capture=sys: text in memory
            return kept.getvalue().encode("utf-8", "replace")
        kept.flush()
        raw = getattr(kept, "buffer", kept)
        place = raw.tell()
        raw.seek(0)
        data = raw.read()
        raw.seek(place)
        return data

    def _write(self, data):
        target = getattr(self._stream, "targetfd_save", None)
        if target is None:
            target = 2 if getattr(self._stream, "name", "") == "stderr" else 1
        while data:
            data = data[os.write(target, data) :]
