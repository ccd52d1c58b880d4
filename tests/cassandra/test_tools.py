"""What runs the servers of tests, without a server: configuration, jars, processes, the proxy."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from awaited import lives, until
from cassandra_server import DURABLE, Proxy, ServerError, machine
from cassandra_server.config import Node, cassandra_yaml, java_command, nodetool_command
from cassandra_server.process import WatchedProcess

on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


def node(**given: Any) -> Node:
    """A node that is never started."""
    return Node(folder=Path("/data"), native_port=9042, storage_port=7000, jmx_port=7199, **given)


def environment() -> dict[str, str]:
    """Of another Python that imports what tests import."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")}


def children(pid: int) -> list[int]:
    """Processes that it started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class TestConfig:
    """Pure functions."""

    def test_a_node_listens_where_it_is_told(self):
        told = json.loads(cassandra_yaml(node(address="127.0.0.2", token=7, seed="127.0.0.1")))
        assert (told["listen_address"], told["rpc_address"]) == ("127.0.0.2", "127.0.0.2")
        assert (told["native_transport_port"], told["storage_port"]) == (9042, 7000)
        assert told["initial_token"] == "7"
        assert told["seed_provider"][0]["parameters"] == [{"seeds": "127.0.0.1:7000"}]

    def test_a_vector_index_gets_no_more_writers_than_it_bears_on_two_cores(self):
        assert json.loads(cassandra_yaml(node()))["concurrent_writes"] == 2

    def test_a_mutation_of_16_mib_fits_half_a_segment_and_one_message(self):
        told = json.loads(cassandra_yaml(node()))
        assert int(told["commitlog_segment_size"].removesuffix("MiB")) / 2 > 16
        assert int(told["native_transport_max_message_size"].removesuffix("MiB")) > 16

    def test_settings_replace_what_there_is_and_none_removes_it(self):
        told = json.loads(cassandra_yaml(node(settings={**DURABLE, "concurrent_reads": 3})))
        assert told["commitlog_sync"] == "batch"
        assert "commitlog_sync_period" not in told
        assert told["concurrent_reads"] == 3

    def test_the_command_names_the_heap_the_agent_and_the_files(self, tmp_path):
        (tmp_path / "jamm-0.4.0.jar").touch()
        command = java_command(Path("/java"), tmp_path, node(heap="512M"))
        assert command[0] == "/java"
        assert {"-Xms512M", "-Xmx512M", f"-javaagent:{tmp_path}/jamm-0.4.0.jar"} <= set(command)
        assert "-Dcassandra.config=file:///data/cassandra.yaml" in command
        assert command[-1] == "org.apache.cassandra.service.CassandraDaemon"

    def test_only_a_lone_node_does_not_wait_for_gossip(self, tmp_path):
        (tmp_path / "jamm-0.4.0.jar").touch()
        skip = "-Dcassandra.skip_wait_for_gossip_to_settle=0"
        assert skip in java_command(Path("/java"), tmp_path, node(), alone=True)
        assert skip not in java_command(Path("/java"), tmp_path, node(), alone=False)

    def test_nodetool_keeps_its_history_out_of_the_home_folder(self):
        command = nodetool_command(Path("/java"), Path("/jars"), node(), ["flush", "k"])
        assert "-Duser.home=/data" in command
        assert command[-4:] == ["-p", "7199", "flush", "k"]

    def test_the_compose_file_gives_the_same_settings(self):
        compose = (Path(__file__).parents[2] / "compose.yaml").read_text()
        given = dict(re.findall(r"-Dcassandra\.settings\.(\w+)=(\S+)", compose))
        told = json.loads(cassandra_yaml(node()))
        assert "concurrent_writes" in given
        assert given == {name: str(told[name]) for name in given}


class TestMachine:
    """What must be there, and what it says when it is not."""

    def test_another_pom_has_another_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("LINKSTORE_CASSANDRA_HOME", str(tmp_path))
        ours = machine.jar_folder()
        assert ours.parent == tmp_path
        (tmp_path / "pom.xml").write_text("<project/>")
        monkeypatch.setattr(machine, "POM", tmp_path / "pom.xml")
        assert machine.jar_folder() != ours

    def test_without_java_or_maven_there_is_a_reason(self, tmp_path, monkeypatch):
        monkeypatch.setenv("LINKSTORE_CASSANDRA_HOME", str(tmp_path))
        java_17 = machine.java_17.__wrapped__
        monkeypatch.setattr(machine.shutil, "which", lambda name: None)
        monkeypatch.setattr(machine, "java_17", lambda: Path("/java"))
        assert "install maven" in machine.why_not()
        monkeypatch.setattr(machine, "java_17", java_17)
        monkeypatch.setattr(machine, "_javas", lambda: iter(()))
        assert "Java 17" in machine.why_not()

    def test_a_failed_fetch_says_what_maven_said_and_leaves_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setenv("LINKSTORE_CASSANDRA_HOME", str(tmp_path))
        mvn = tmp_path / "mvn"
        mvn.write_text("#!/bin/sh\necho no such artifact; exit 1\n")
        mvn.chmod(0o755)
        monkeypatch.setattr(machine, "maven", lambda: str(mvn))
        with pytest.raises(ServerError, match="no such artifact"):
            machine.jars()
        assert not machine.jar_folder().exists()

    def test_many_processes_fetch_once(self, tmp_path, monkeypatch):
        monkeypatch.setenv("LINKSTORE_CASSANDRA_HOME", str(tmp_path))
        mvn = tmp_path / "mvn"
        mvn.write_text(
            f"#!/bin/sh\necho ran >> {tmp_path}/runs; sleep 0.2\n"
            'for last; do :; done; mkdir -p "${last#-DoutputDirectory=}"\n'
        )
        mvn.chmod(0o755)
        code = (
            "import sys; from cassandra_server import machine\n"
            "machine.maven = lambda: sys.argv[1]; machine.jars()"
        )
        running = [
            subprocess.Popen([sys.executable, "-c", code, str(mvn)], env=environment()) for _ in range(3)
        ]
        assert [process.wait(60) for process in running] == [0, 0, 0]
        assert (tmp_path / "runs").read_text() == "ran\n"
        assert machine.jar_folder().is_dir()

    def test_a_free_port_is_one_nobody_listens_on(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert machine.free_port(wanted=port) != port
        assert machine.free_port(wanted=port) == port

    def test_an_address_of_another_machine_is_refused(self):
        with pytest.raises(ServerError, match="not an address of this machine"):
            machine.free_port(["192.0.2.1"])


@on_linux
class TestProcess:
    """Nothing is left running."""

    def test_it_dies_with_the_process_that_started_it_however_that_ends(self, tmp_path):
        code = (
            "import sys, time; from pathlib import Path\n"
            "from cassandra_server.process import WatchedProcess\n"
            "print(WatchedProcess(['sleep', '100'], Path(sys.argv[1])).pid, flush=True); time.sleep(100)"
        )
        starter = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "log")], stdout=subprocess.PIPE, env=environment()
        )
        pid = int(starter.stdout.readline())
        until(lambda: children(pid))
        starter.kill()
        starter.wait()
        starter.stdout.close()
        until(lambda: not lives(pid))

    def test_the_watcher_goes_when_the_process_was_killed(self, tmp_path):
        process = WatchedProcess(["sleep", "100"], tmp_path / "log")
        until(lambda: children(process.pid))
        [watcher] = children(process.pid)
        process.kill()
        until(lambda: not lives(watcher))
        assert process.exit_code == -signal.SIGKILL

    def test_a_process_that_ends_by_itself_has_a_code_and_its_words_are_kept(self, tmp_path):
        process = WatchedProcess(["sh", "-c", "echo last words; exit 3"], tmp_path / "log")
        until(lambda: process.exit_code == 3)
        assert (tmp_path / "log").read_text() == "last words\n"

    def test_a_paused_process_can_be_ended(self, tmp_path):
        for end in (WatchedProcess.kill, lambda process: process.terminate(10)):
            process = WatchedProcess(["sleep", "100"], tmp_path / "log")
            process.signal(signal.SIGSTOP)
            end(process)
            assert process.exit_code in {-signal.SIGKILL, -signal.SIGTERM}


@contextmanager
def echo() -> Iterator[int]:
    """A server that says everything back; its port."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=[connection], daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(1 << 16):
                connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with echo() as port, Proxy("127.0.0.1", port) as made:
        yield made


def dial(proxy: Proxy) -> socket.socket:
    """A connection through the proxy."""
    return socket.create_connection((proxy.host, proxy.port), timeout=5)


def received(connection: socket.socket, count: int) -> bytes:
    """So many bytes."""
    with connection.makefile("rb") as said:
        return said.read(count)


class TestProxy:
    """Each of the things a test does to a connection."""

    def test_it_passes_everything_on_both_ways(self, proxy):
        sent = os.urandom(3_000_000)
        with dial(proxy) as line:
            threading.Thread(target=line.sendall, args=[sent]).start()
            assert received(line, len(sent)) == sent
            assert proxy.connections == 1
        until(lambda: proxy.connections == 0)

    def test_a_cut_resets_connections_and_refuses_new_ones_until_it_heals(self, proxy):
        with dial(proxy) as line:
            line.sendall(b"a")
            assert received(line, 1) == b"a"
            proxy.cut()
            with pytest.raises(ConnectionResetError):
                line.recv(1)
        with pytest.raises(ConnectionRefusedError):
            dial(proxy)
        proxy.heal()
        with dial(proxy) as line:
            line.sendall(b"b")
            assert received(line, 1) == b"b"

    def test_a_stalled_connection_is_open_but_silent_and_says_the_rest_when_healed(self, proxy):
        with dial(proxy) as line:
            proxy.stall()
            line.sendall(b"late")
            line.settimeout(0.2)
            with pytest.raises(TimeoutError):
                line.recv(4)
            line.settimeout(5)
            proxy.heal()
            assert received(line, 4) == b"late"

    def test_a_delay_holds_each_piece_up(self, proxy):
        with dial(proxy) as line:
            proxy.delay(0.1)
            start = time.monotonic()
            line.sendall(b"slow")
            assert received(line, 4) == b"slow"
            assert time.monotonic() - start >= 0.2

    def test_it_can_cut_in_the_middle_of_an_answer(self, proxy):
        with dial(proxy) as line:
            line.sendall(b"x")
            assert received(line, 1) == b"x"
            proxy.cut_after(3)
            line.sendall(b"half of it")
            got = b""
            with suppress(ConnectionResetError):
                while piece := line.recv(10):
                    got += piece
            assert len(got) <= 3
        with pytest.raises(ConnectionRefusedError):
            dial(proxy)

    def test_where_nothing_listens_connections_end(self):
        nobody = machine.free_port()
        with Proxy("127.0.0.1", nobody) as proxy, pytest.raises(ConnectionResetError), dial(proxy) as line:
            line.recv(1)
