"""The ringway of the client cases."""

import re
import socket
from pathlib import Path

from services import Server, StartError

HERE = Path(__file__).resolve().parent


class Ringway(Server):
    """The server of the client cases: httpbin's operations declared by hand, three keys."""

    def __init__(self, binary, folder, httpbin_port, extra_settings=None):
        catalog = (HERE / "httpbin.toml").read_text()
        pointed, count = re.subn(
            r'^base_url = ".*"$', f'base_url = "http://127.0.0.1:{httpbin_port}"', catalog, flags=re.M
        )
        assert count == 1, "httpbin.toml has one connection"
        catalogs = {"catalog.toml": pointed, "governed.toml": (HERE / "governed.toml").read_text()}
        super().__init__(binary, folder, catalogs, extra_settings)
        self.keys = {name: self.new_key(name) for name in ("assistant", "strict", "governed")}

    def notify(self):
        """Has every standing stream told that its tool list changed."""
        self._admin("/notify")

    def publish(self, is_published):
        """Shows or hides a tool of the governed client application."""
        what = "publish" if is_published else "unpublish"
        self._admin(f"/catalog/tools/demo/records/list%20slides/{what}")

    def set_prompt(self, prompt):
        """Gives the governed client application another prompt."""
        catalog = (HERE / "governed.toml").read_text()
        changed, count = re.subn(r'^prompt = ".*"$', f'prompt = "{prompt}"', catalog, flags=re.M)
        assert count == 1, "governed.toml has one assignment with a prompt"
        (self.folder / "changed.toml").write_text(changed)
        self.command("apply", str(self.folder / "changed.toml"))

    def _admin(self, target):
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(10)
            admin.connect(str(self.data / "admin.sock"))
            admin.sendall(
                f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            answer = b""
            while piece := admin.recv(4096):
                answer += piece
                if b"\r\n\r\n" in answer:
                    break
        status = answer.split(b" ", 2)[1] if answer.count(b" ") >= 2 else answer
        if not status.startswith(b"2"):
            raise StartError(f"POST {target} was answered {answer[:200]!r}")
