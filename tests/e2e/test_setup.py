"""Set-up commands: packages from an index of one's own, and failures that say their reason."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.bubblewrap import UNSAFE
from tests.e2e.client import ToolFailed, pdbox

INSTALL = "python -m pip install --target vendor --retries 0 greeting"

pytestmark = pytest.mark.long


class Quiet(SimpleHTTPRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that no system trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pdbox test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("certificate") / "ca.pem"
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, form, serialization.NoEncryption()))
    return file


@pytest.fixture
def index(certificate: Path, tmp_path: Path) -> Iterator[str]:
    """A package index with that certificate, which has one package."""
    folder = tmp_path / "simple" / "greeting"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "greeting-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting.py", "TEXT = 'hello from the index'\n")
        wheel.writestr("greeting-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1\n")
        wheel.writestr(
            "greeting-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("greeting-1.dist-info/RECORD", "")
    handler = partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """An empty repository."""
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


async def failure(repo: Path, *flags: str) -> str:
    """Text that a client gets for a session whose set-up fails."""
    async with pdbox(*flags, "--repo", str(repo)) as session:
        with pytest.raises(ToolFailed) as failed:
            await session.text("start_session")
    return str(failed.value)


async def test_setup_installs_from_the_index_of_the_company_with_its_certificate(
    repo: Path, index: str, certificate: Path
) -> None:
    company = ["--index-url", index, "--ca-bundle", str(certificate)]
    async with pdbox(*UNSAFE, *company, "--setup", INSTALL, "--repo", str(repo)) as session:
        await session.text("start_session")
        ran = "PYTHONPATH=vendor python -c 'import greeting; print(greeting.TEXT)'"
        assert "hello from the index" in await session.text("bash", command=ran)
        # For set-up alone: programs of the session are not to be changed by it.
        assert "no output" in await session.text("bash", command="env | grep -e PIP_ -e SSL_CERT; true")


async def test_a_certificate_that_is_not_trusted_says_how_to_have_it_trusted(repo: Path, index: str) -> None:
    said = await failure(repo, *UNSAFE, "--index-url", index, "--setup", INSTALL)
    assert "Start the server with `--ca-bundle FILE`" in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-tool install", "There is no `no-such-tool` in "),
        ("sh -c 'kill -9 $$'", "a larger `--memory`"),
        (
            "echo \"requires a different Python: 3.11.2 not in '>=3.12'\"; exit 1",
            "It needs another Python than 3.",
        ),
        ("echo 'OSError: [Errno 28] No space left on device'; exit 1", "a larger `--home-size`"),
        ("echo 'Temporary failure in name resolution'; exit 1", "The sandbox had a network, but"),
        ("exit 3", 'open a session with `setup=["true"]` and run the command with `bash`'),
    ],
)
async def test_a_failed_setup_says_its_reason_and_the_next_step(repo: Path, command: str, said: str) -> None:
    text = await failure(repo, *UNSAFE, "--setup", command)
    assert said in text
    assert "--setup-network" not in text


@pytest.mark.docker
async def test_a_setup_without_network_says_how_to_open_one(repo: Path) -> None:
    said = await failure(repo, "--python", "3.11", "--setup", "python -m pip install --retries 0 greeting")
    assert "This sandbox has no network: start the server with `--setup-network`" in said


@pytest.mark.docker
async def test_a_setup_that_fills_the_home_names_it_with_its_setting(repo: Path) -> None:
    flags = ["--python", "3.11", "--home-size", "16MiB", "--setup", "head -c 20M /dev/zero > ~/torch.so"]
    said = await failure(repo, *flags)
    assert "/home/sandbox is full (16 MiB): remove something there, or start the server with a larger" in said
    assert "network" not in said


@pytest.mark.docker
async def test_a_full_home_is_told_at_any_later_failure(repo: Path) -> None:
    async with pdbox("--python", "3.11", "--home-size", "16MiB", "--repo", str(repo)) as session:
        await session.text("bash", command="head -c 20M /dev/zero > ~/big; true")
        assert "is full" not in await session.text("bash", command="true")
        failed = await session.text("bash", command="echo 1 > ~/x")
        assert failed.startswith("note: /home/sandbox is full (16 MiB)")
        program = "import pathlib; pathlib.Path('~/x').expanduser().write_text('1')"
        await session.text("bash", command=f'echo "{program}" > app.py')
        stopped = await session.text("pdb", command="c", entrypoint="python app.py")
        assert "/home/sandbox is full (16 MiB)" in stopped and "No space left on device" in stopped


@pytest.mark.docker
async def test_a_second_server_starts_with_what_the_set_up_of_the_first_made(repo: Path) -> None:
    flags = ["--python", "3.11", "--setup", "cat /proc/sys/kernel/random/uuid > ~/run; python3 -m venv .venv"]
    runs: list[tuple[str, str]] = []
    for more in ([], ["--keep-setups", "1GiB"], ["--keep-setups", "0"]):
        async with pdbox(*flags, *more, "--repo", str(repo)) as session:
            started = await session.text("start_session")
            assert ("Set-up kept from an earlier session" in started) == (more == ["--keep-setups", "1GiB"])
            look = "cat ~/run; python -c 'import sys; print(sys.prefix)'; pip --version"
            runs.append((await session.text("bash", command=look), await session.text("diff")))
    first, second, third = runs
    assert first == second and "/workspace/.venv" in first[0]
    assert third[0] != first[0] and third[1] == first[1]
