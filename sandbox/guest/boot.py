"""First program in a sandbox: unpacks the guest's files from stdin and starts the supervisor or `precompile`.

Its source is an argument (`python -I -S -u -c SOURCE CONFIG`), so it imports nothing of ours before it has
unpacked it. Of the library it imports only modules that the supervisor needs too.
"""

import json
import os
import sys
import zlib


def main():
    """Unpack `pdbox_guest` into the first of config["homes"] that can be made, and call its main function."""
    config = json.loads(sys.argv[1])
    if sys.version_info < (3, 8):
        sys.exit("%s is Python %d.%d; pdbox needs 3.8 or newer" % ((sys.executable,) + sys.version_info[:2]))
    home = config["home"] = make_home(config["homes"])
    config["socket"] = os.path.join(home, "socket")
    unpack(read_part(), home)
    bytecode = read_part()
    try:
        if bytecode:
            unpack(bytecode, home)
    except (zlib.error, ValueError, OSError) as exc:
        # It only saves time. The import system itself ignores bytecode of other sources or of another Python.
        print("the guest's bytecode is of no use: %s" % exc, file=sys.stderr)
    # The debuggee is another process: its imports never see this path.
    sys.path.insert(0, home)
    if config.get("compile"):
        from pdbox_guest.precompile import main  # pyright: ignore[reportMissingImports]
    else:
        from pdbox_guest.supervisor.main import main  # pyright: ignore[reportMissingImports]
    main(config)


def make_home(places):
    """Make the folder for this user alone, in the first of `places` where that is possible."""
    refusals = []
    for home in places:
        try:
            if not os.path.isdir(home):
                os.mkdir(home, 0o700)
            os.chmod(home, 0o700)
            return home
        except OSError as exc:
            refusals.append(str(exc))
    sys.exit("no folder for the guest: %s" % "; ".join(refusals))


def read_part():
    """Read a block of stdin, which its length precedes."""
    return read_exactly(int.from_bytes(read_exactly(4), "big"))


def read_exactly(size):
    """Read `size` bytes of stdin and no more: the rest belongs to the supervisor."""
    data = bytearray()
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit("stdin ended before the guest had arrived")
        data += piece
    return bytes(data)


def unpack(data, home):
    """Write the files into `home`, readable only by this user."""
    data = memoryview(zlib.decompress(data))
    start = 4 + int.from_bytes(data[:4], "big")
    folders = set()
    for name, size in json.loads(bytes(data[4:start]).decode()):
        path = os.path.join(home, name)
        folder = os.path.dirname(path)
        if folder not in folders:
            os.makedirs(folder, exist_ok=True)
            folders.add(folder)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, data[start : start + size])
        os.close(fd)
        start += size


main()
