"""What the machine has and must have: Java 17, Maven, the jars, free ports."""

from __future__ import annotations

import functools
import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock

POM = Path(__file__).with_name("pom.xml")
FETCH_SECONDS = 600
PORTS = range(10_000, 32_000)
"""Below those that systems give to outgoing connections, so that a port stays free while its node is down."""


class ServerError(RuntimeError):
    """Cassandra cannot run here, or did not start; the message says why and what to do."""


def why_not() -> str | None:
    """The reason why Cassandra cannot run on this machine; None if it can."""
    try:
        java_17()
        if not jar_folder().is_dir():
            maven()
    except ServerError as error:
        return str(error)
    return None


@functools.cache
def java_17() -> Path:
    """A Java 17, from JAVA_HOME, the PATH, or where Debian keeps several.

    Raises:
        ServerError: There is none.
    """
    for java in _javas():
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        if re.search(r'version "17[."]', said.stderr):
            return java
    raise ServerError("Cassandra 5.0 needs Java 17; install openjdk-17-jdk-headless or set JAVA_HOME")


def _javas() -> Iterator[Path]:
    """Javas that may be the right one, the chosen first."""
    if home := os.environ.get("JAVA_HOME"):
        yield from Path(home).glob("bin/java")
    if found := shutil.which("java"):
        yield Path(found)
    yield from sorted(Path("/usr/lib/jvm").glob("*17*/bin/java"))


def maven() -> str:
    """The Maven command.

    Raises:
        ServerError: There is none.
    """
    found = shutil.which("mvn")
    if found is None:
        raise ServerError("Cassandra's jars are fetched by Maven; install maven, so that mvn is on the PATH")
    return found


def jar_folder() -> Path:
    """Where the jars are kept: by the pom's hash, in LINKSTORE_CASSANDRA_HOME or the user's cache."""
    given = os.environ.get("LINKSTORE_CASSANDRA_HOME") or Path.home() / ".cache" / "linkstore-cassandra"
    return Path(given).expanduser().absolute() / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]


def jars() -> Path:
    """The folder of the jars, fetched the first time (67 MB, some ten seconds), by one process only.

    Raises:
        ServerError: Maven is missing or failed.
    """
    folder = jar_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / "fetch.lock"):
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    """Fetch beside and rename, so that the folder is whole or not there."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        made = Path(beside) / "lib"
        command = [maven(), "-q", "-B", "--strict-checksums", "-f", str(POM), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={made}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=beside, timeout=FETCH_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise ServerError(f"Maven did not fetch Cassandra's jars within {FETCH_SECONDS} s") from None
        if done.returncode:
            raise ServerError(f"Maven could not fetch Cassandra's jars:\n{done.stdout}{done.stderr}")
        made.replace(folder)


def free_port(addresses: Sequence[str] = ("127.0.0.1",), *, wanted: int | None = None) -> int:
    """A port on which nothing listens at any of the addresses.

    Args:
        addresses: Of this machine.
        wanted: Taken if it is free.

    Raises:
        ServerError: None was found, or an address is not this machine's.
    """
    # Not the shared generator: tests seed it, and two processes would try the same ports.
    tries = ([] if wanted is None else [wanted]) + random.SystemRandom().sample(PORTS, 100)
    for port in tries:
        if all(_is_free(address, port) for address in addresses):
            return port
    raise ServerError(f"no free port at {', '.join(addresses)}")


def _is_free(address: str, port: int) -> bool:
    """Whether one could listen there. Loopback but 127.0.0.1 must be set up on some systems."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS:
                raise ServerError(
                    f"{address} is not an address of this machine: add it to loopback"
                ) from None
            return False
    return True


_NO_SUCH_ADDRESS = {49, 99}
