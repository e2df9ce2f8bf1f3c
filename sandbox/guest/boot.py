"""The first thing that runs in a sandbox: takes the guest's files from stdin and starts the supervisor.

Its source is given to `python -I -u -c SOURCE CONFIG`, so it imports nothing of ours until it has unpacked it.
"""

import io
import json
import os
import struct
import sys
import zipfile


def main():
    """Unpack `pdbox_guest` into config["home"] and hand over."""
    config = json.loads(sys.argv[1])
    (size,) = struct.unpack(">I", exactly(4))
    unpack(exactly(size), config["home"])
    # The debuggee's own imports never see this path: it is another process.
    sys.path.insert(0, config["home"])
    from pdbox_guest.supervisor.main import main  # pyright: ignore[reportMissingImports]

    main(config)


def exactly(size):
    """`size` bytes of stdin and not one more: what follows belongs to the supervisor."""
    data = bytearray()
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit("stdin ended before the guest had arrived")
        data += piece
    return bytes(data)


def unpack(data, home):
    """Put the files of the zip into `home`, readable only for us."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.chmod(home, 0o700)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(home)


main()
