"""The processes the cases need: httpbin under gunicorn, and ringway itself."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parent.parent / ".environment"
START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 10
# What the store may lose in a crash is what it got within its last `flush_ms`. Nothing tells a
# client when that has passed, so before a kill we wait for several times that long.
FLUSHED_SECONDS = 0.3

# No proxy between a test and its loopback services.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StartError(Exception):
    """A process that did not come up; the text holds the end of its log."""


def end_of(log):
    return log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"


_ports_given = set()
_ports_lock = threading.Lock()


def free_port():
    """A port nobody listens on. Ringway shares ports, so none is given out twice."""
    with _ports_lock:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            if port not in _ports_given:
                _ports_given.add(port)
                return port


def stop(process):
    """SIGTERM, then SIGKILL; gives the exit code, `None` when it had to be killed."""
    if process.poll() is None:
        process.terminate()
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None
    return process.returncode


class Httpbin:
    """httpbin under gunicorn, on a port of its own choice that its log names."""

    def __init__(self, log):
        self.log = log
        python = ENVIRONMENT / "httpbin" / "bin" / "python"
        command = [python, "-m", "gunicorn", "httpbin:app", "--bind", "127.0.0.1:0"]
        command += ["--worker-class", "gthread", "--workers", "1", "--threads", "64"]
        command += ["--keep-alive", "30", "--graceful-timeout", "1", "--no-control-socket"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        )
        self.port = None
        self._listening = threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()
        if not self._listening.wait(START_SECONDS_MAX) or self.port is None:
            stop(self.process)
            raise StartError(f"httpbin did not start: {end_of(log)}")

    def _follow(self):
        with self.log.open("w") as copy:
            for line in self.process.stdout:
                copy.write(line)
                copy.flush()
                if found := re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", line):
                    self.port = int(found[1])
                    self._listening.set()
        self._listening.set()

    def stop(self):
        stop(self.process)


class PortPrinter:
    """A service that prints its port as its first line."""

    def __init__(self, command, log):
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        first = self.process.stdout.readline().strip()
        if not first.isdigit():
            stop(self.process)
            raise StartError(f"{command[-1]} did not start: {end_of(log)}")
        self.port = int(first)

    def stop(self):
        stop(self.process)
        self.process.stdout.close()


class Server:
    """One ringway process with its own folder, port, catalog files and settings."""

    def __init__(self, binary, folder, catalogs, extra_settings=None):
        """Makes the folder and starts; `catalogs` is the text of each catalog file by its name."""
        self.binary, self.folder = Path(binary).resolve(), folder
        self.data = folder / "data"
        self.log = folder / "ringway.log"
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        folder.mkdir(parents=True)
        self.data.mkdir(mode=0o700)
        for name, text in catalogs.items():
            (folder / name).write_text(text)
        self._write_settings(list(catalogs), extra_settings or {})
        self.keys = {}
        self.process = None
        self.start()

    def _write_settings(self, catalogs, extra):
        sections = {
            "listen": {"runtime": f"127.0.0.1:{self.port}"},
            "runtime": {
                "data_directory": str(self.data),
                "catalog": [str(self.folder / name) for name in catalogs],
                "pin": False,
                "cores": 2,
            },
        }
        for name, keys in extra.items():
            sections.setdefault(name, {}).update(keys)
        lines = []
        for name, keys in sections.items():
            # JSON's strings, numbers, booleans and lists of strings are TOML's too.
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""]
        (self.folder / "ringway.toml").write_text("\n".join(lines))

    def environment(self):
        """What its commands run with: this machine's, and where its data are."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RINGWAY_")}
        return kept | {"RINGWAY_RUNTIME__DATA_DIRECTORY": str(self.data), "RUST_BACKTRACE": "1"}

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--config", self.folder / "ringway.toml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
                cwd=self.folder,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._ready():
            if self.process.poll() is not None:
                raise StartError(f"ringway ended with {self.process.returncode}: {end_of(self.log)}")
            if time.monotonic() > deadline:
                stop(self.process)
                raise StartError(f"ringway was not ready in time: {end_of(self.log)}")
            time.sleep(0.02)

    def _ready(self):
        try:
            with _OPENER.open(f"{self.base}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def run(self, *words, seconds_max=30):
        """Runs a ringway command against this process, however it ends."""
        return subprocess.run(
            [self.binary, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=self.environment(), cwd=self.folder, timeout=seconds_max, check=False,
        )

    def command(self, *words, seconds_max=30):
        """Runs a ringway command that must end well; gives what it printed."""
        done = self.run(*words, seconds_max=seconds_max)
        if done.returncode != 0:
            raise StartError(f"ringway {' '.join(words)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def new_key(self, application):
        key = self.command("key", "create", "--client", f"demo/{application}").strip()
        if not key or " " in key or "\n" in key:
            raise StartError(f"key create must print the key alone, not {key!r}")
        return key

    def kill_and_restart(self):
        time.sleep(FLUSHED_SECONDS)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def stop_and_restart(self):
        code = stop(self.process)
        if code != 0:
            raise StartError(f"SIGTERM ended ringway with {code}")
        self.start()

    def stop(self):
        return stop(self.process)

    def panics(self):
        """Lines of the log that tell of a panic."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if "panicked" in line]
