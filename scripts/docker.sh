#!/bin/sh
# docker.sh PYTHON: sees to it that a Docker engine answers. Where one does, that is all. On a Debian machine,
# as root, it installs Debian's docker.io (and bubblewrap) and starts it; elsewhere it says what to do.
# PYTHON is an interpreter with pdbox installed, which knows where engines listen.
set -eu

python=$1
log=${PDBOX_DOCKERD_LOG:-/var/log/dockerd.log}

say() { printf 'docker: %s\n' "$*"; }
fail() { printf 'docker: %s\n' "$*" >&2; exit 1; }

# Prints the engine, or why there is none. Any other failure than a missing engine ends this script.
engine() {
    "$python" -P - <<'END'
import os, sys
import anyio
from sandbox.docker.backend import DockerBackend
from sandbox.errors import BackendUnavailable

try:
    print(anyio.run(DockerBackend(os.environ).probe))
except BackendUnavailable as exc:
    print(exc.message)
    sys.exit(3)
END
}
answers() {
    status=0
    found=$(engine) || status=$?
    [ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
    return "$status"
}

if answers; then
    say "$found"
    exit 0
fi

[ -z "${DOCKER_HOST:-}" ] || fail "$found DOCKER_HOST is $DOCKER_HOST."
[ -e /etc/debian_version ] || fail "$found Install Docker (https://docs.docker.com/engine/install/) and start it."
[ "$(id -u)" = 0 ] || fail "$found As root, this command installs and starts Debian's docker.io: sudo make docker"

if ! command -v dockerd >/dev/null || ! command -v debootstrap >/dev/null || ! command -v iptables >/dev/null; then
    say "installing docker.io, iptables, cgroupfs-mount, debootstrap and bubblewrap from Debian"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        install docker.io iptables cgroupfs-mount debootstrap bubblewrap ca-certificates </dev/null >/dev/null
fi

# Where there is an init system, the package has started it, or this does.
if [ -d /run/systemd/system ]; then
    say "starting it with systemctl"
    systemctl start docker
elif ! answers; then
    [ ! -x /usr/bin/cgroupfs-mount ] || cgroupfs-mount
    say "starting dockerd, its log is $log"
    # By Python, since it closes every inherited descriptor: a dockerd that held a pipe of ours open would
    # keep whoever reads our output (make | tee, a CI runner) waiting for ever.
    "$python" - "$log" <<'END'
import subprocess, sys

with open(sys.argv[1], "ab") as log:
    subprocess.Popen(
        ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
    )
END
fi

# It has no way to tell when it is ready but to answer.
tries=0
until answers; do
    tries=$((tries + 1))
    if [ "$tries" -ge 60 ]; then
        [ ! -e "$log" ] || tail -n 15 "$log" >&2
        fail "no engine after a minute; the end of $log is above"
    fi
    sleep 0.5
done
say "$found"
