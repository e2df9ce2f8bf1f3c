#!/bin/sh
# Runs inside a freshly bootstrapped root (chroot): the same commands as in the Dockerfile's image, and
# nothing that only fills space.
set -eu

[ -e /usr/bin/python ] || ln -s python3 /usr/bin/python
[ -e /usr/bin/pytest ] || ln -s pytest-3 /usr/bin/pytest
# Debian keeps pip out of its own Python; in here there is no system to protect.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED

# Programs run as this user; a name for it keeps getpass, git and pwd happy.
echo 'sandbox:x:10001:10001:sandbox:/home/sandbox:/bin/sh' >> /etc/passwd
echo 'sandbox:x:10001:' >> /etc/group
mkdir -p /home/sandbox /workspace /run/pdbox
chown 10001:10001 /home/sandbox /workspace /run/pdbox

apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log /var/log/apt \
    /usr/share/man/* /usr/share/locale/* /usr/share/info/*
# Licences stay, the rest of the documentation goes.
find /usr/share/doc -depth -type f ! -name copyright -delete
find /usr/share/doc -empty -delete
