"""Where memory or descriptors lack, errors say so: no crash in usearch, no healthy file called damaged."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from linkstore.engines.embedded import files
from linkstore.errors import BackendError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits are those of POSIX")

# A block that is freed makes malloc keep blocks of that size on its heap. Those below, freed, leave room
# there, and the limit leaves none in the system, from which usearch takes its memory.
PROGRAM = """
    import resource, sys
    from pathlib import Path
    import numpy as np
    from linkstore.engines.embedded import files
    from linkstore.engines.embedded.vectors import AnnIndex

    rows = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    path = Path(sys.argv[1])
    index = AnnIndex.make(8).extend(np.arange(300), lambda keys: rows[keys], 300)
    digest = index.save(path, {})
    raw = files.map_file(path / files.name_file(digest), digest)
    block = np.ones(31 << 20, np.uint8)
    del block
    blocks = [np.ones(30 << 20, np.uint8) for _ in range(2)]
    del blocks
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    room = np.ones(49 << 20, np.uint8)
    del room
    for work in (
        lambda: AnnIndex.load(raw, 300, view=False),
        lambda: AnnIndex.make(8),
        lambda: index.extend(np.arange(300, 400), lambda keys: -rows[keys - 300], 400),
    ):
        try:
            work()
        except MemoryError as error:
            print(error)
"""


def test_room_on_the_heap_is_not_taken_for_memory_of_the_system(tmp_path) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, (ended.returncode, ended.stderr)
    assert ended.stdout.count("of memory") + ended.stdout.count("no memory") == 3, ended.stdout


def unreadable(number: int):
    def fail(path):
        raise OSError(number, os.strerror(number), str(path))

    return fail


@pytest.mark.parametrize(
    ("number", "raised"),
    [(errno.ENOMEM, MemoryError), (errno.EMFILE, BackendError), (errno.ENFILE, BackendError)],
)
def test_a_file_is_not_damaged_because_this_process_lacks_something(tmp_path, monkeypatch, number, raised):
    digest = files.write_file(tmp_path, lambda path: path.write_bytes(b"content"))
    path = tmp_path / files.name_file(digest)
    assert files.map_file(path, digest).tobytes() == b"content"
    assert files.map_file(path, digest[::-1]) is None
    monkeypatch.setattr(files, "map_bytes", unreadable(number))
    with pytest.raises(raised):
        files.map_file(path, digest)
    monkeypatch.setattr(files, "map_bytes", unreadable(errno.EIO))
    assert files.map_file(path, digest) is None
