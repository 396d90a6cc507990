"""A headless Chromium that tests drive: open, press keys, run script, download; it notes requests and console lines."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import aiohttp

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
)  # fmt: skip

CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}
"""Of the keys that the browser itself obeys."""


class Browser:
    """One page of a Chromium with a profile of its own; what it stores lives as long as the profile's folder."""

    def __init__(self, profile: Path, downloads: Path, size: tuple[int, int] = (1200, 900)) -> None:
        self.profile, self.downloads, self.size = profile, downloads, size
        self.requests: list[str] = []
        self.console: list[str] = []

    def __enter__(self) -> Self:
        assert BROWSER is not None
        width, height = self.size
        self.process = subprocess.Popen(
            [BROWSER, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self.profile}", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"ws://[\d.]+:(\d+)/", line)
            if found:
                break
        else:
            raise RuntimeError("Chromium did not start")
        self.loop = asyncio.new_event_loop()
        self._number = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.loop.run_until_complete(self._connect(int(found[1])))
        return self

    async def _connect(self, port: int) -> None:
        self.session = aiohttp.ClientSession()
        async with self.session.get(f"http://127.0.0.1:{port}/json") as answer:
            pages = [one for one in await answer.json(content_type=None) if one["type"] == "page"]
        self.socket = await self.session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self._send(f"{domain}.enable")
        await self._send("Emulation.setFocusEmulationEnabled", enabled=True)
        await self._send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    async def _read(self) -> None:
        async for message in self.socket:
            data = message.json()
            method, params = data.get("method"), data.get("params", {})
            if "id" in data:
                self._replies.pop(data["id"]).set_result(data)
            elif method == "Page.loadEventFired":
                self._loaded.set()
            elif method == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif method == "Runtime.consoleAPICalled":
                self.console.append(str([one.get("value") for one in params["args"]]))
            elif method == "Runtime.exceptionThrown":
                self.console.append(str(params["exceptionDetails"].get("exception", {}).get("description")))
            elif method == "Log.entryAdded":
                self.console.append(params["entry"]["text"])

    async def _send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        reply = self._replies[self._number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": self._number, "method": method, "params": params})
        data = await asyncio.wait_for(reply, 30)
        if "error" in data:
            raise RuntimeError(f"{method}: {data['error']}")
        return data["result"]

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self.loop.run_until_complete(self._send(method, **params))

    def open(self, url: str) -> None:
        async def go() -> None:
            self._loaded.clear()
            await self._send("Page.navigate", url=url)
            await asyncio.wait_for(self._loaded.wait(), 30)

        self.loop.run_until_complete(go())

    def run(self, script: str) -> Any:
        """Return what a script comes to; a promise is waited for."""
        data = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in data:
            raise RuntimeError(str(data["exceptionDetails"]))
        return data["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            code = {"windowsVirtualKeyCode": CODES[key]} if key in CODES else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def downloaded(self, pattern: str) -> Path:
        """Return the newest download once it is whole."""

        async def wait() -> Path:
            for _ in range(200):
                found = [path for path in self.downloads.glob(pattern) if path.suffix != ".crdownload"]
                if found and not list(self.downloads.glob("*.crdownload")):
                    return max(found, key=lambda path: path.stat().st_mtime_ns)
                await asyncio.sleep(0.05)
            raise TimeoutError(f"nothing was downloaded to {self.downloads}")

        return self.loop.run_until_complete(wait())

    def __exit__(self, *error: object) -> None:
        async def close() -> None:
            await self.socket.close()
            await self._reader
            await self.session.close()

        self.loop.run_until_complete(close())
        self.loop.close()
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
