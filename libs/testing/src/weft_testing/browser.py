"""The machine's own Chromium, headless, on a new profile, for tests of what people see. Nothing is downloaded."""

import base64
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from weft_testing.story import until

_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests run as root, too
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-proxy-server",
)
_BY_KEYS = re.compile("([\\0-\uffff]+)|([^\\0-\uffff]+)")
"""What chromedriver types, and what it only inserts as an input method does: characters beyond the first 65,536."""
_LIMIT_S = 30
"""Of one command to the browser."""
_NAMELESS = {"button", "textbox", "combobox", "link", "region", "log", "list"}
"""Roles that a screen reader must be able to call by a name."""


def missing() -> str | None:
    """Why there is no browser to test with, and the remedy; None where there is one."""
    absent = [name for name, path in (("Chromium", _chromium()), ("chromedriver", _driver())) if path is None]
    if not absent:
        return None
    return (
        f"{' and '.join(absent)} not found, so the page was not tested; install it"
        " (Debian: apt install chromium chromium-driver; Fedora: dnf install chromium chromedriver)"
    )


class Browser:
    """One browser with one tab. Raises where the page or the browser doesn't do as told within its bound."""

    def __init__(self) -> None:
        # Here, because it takes half a second and only these tests need it; by name, because its types are partial.
        webdriver: Any = import_module("selenium.webdriver")
        services: Any = import_module("selenium.webdriver.chrome.service")
        chromium, driver = _chromium(), _driver()
        assert chromium is not None, missing()
        assert driver is not None, missing()
        self._profile = tempfile.TemporaryDirectory(prefix="weft-browser-", ignore_cleanup_errors=True)
        options: Any = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*_FLAGS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service: Any = services.Service(driver, env={**os.environ, "HOME": self._profile.name})
        self._driver: Any = webdriver.Chrome(options=options, service=service)
        self._driver.set_page_load_timeout(_LIMIT_S)
        self._driver.set_script_timeout(_LIMIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._driver.quit()
        finally:
            self._profile.cleanup()

    def open(self, url: str) -> None:
        """Load a page."""
        self._driver.get(url)

    def look(self, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """The size of the window in CSS pixels, and the person's colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.tell("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def tell(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._driver.execute_cdp_cmd(command, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """A script's `return` value."""
        return self._driver.execute_script(script, *arguments)

    def ask(self, script: str, *arguments: Any) -> Any:
        """What a script hands to its last argument, a function: for what takes its time in the page."""
        return self._driver.execute_async_script(script, *arguments)

    def text(self, css: str) -> str:
        """What people read in the first element that fits; empty where there is none or it is hidden."""
        # innerText of what is hidden would be all of its text.
        return self.run(
            "const e = document.querySelector(arguments[0]); return e?.checkVisibility() ? e.innerText : ''", css
        )

    def count(self, css: str) -> int:
        """How many elements fit."""
        return self.run("return document.querySelectorAll(arguments[0]).length", css)

    def shows(self, css: str, text: str, timeout: float = 30.0) -> None:
        """Wait until an element shows a text. Raises NotInTime with what it shows instead."""
        try:
            until(f"{css} shows {text!r}", lambda: text in self.text(css), timeout)
        except AssertionError as error:
            raise type(error)(f"{error}; it shows {self.text(css)[:1000]!r}") from None

    def click(self, css: str) -> None:
        self._driver.find_element("css selector", css).click()

    def choose(self, css: str, option: str) -> None:
        """Pick an option of a list by its value."""
        lists: Any = import_module("selenium.webdriver.support.ui")
        lists.Select(self._driver.find_element("css selector", css)).select_by_value(option)

    def type(self, text: str) -> None:
        """Keys to whatever has the focus: a newline is Enter, `\\ue004` Tab, `\\ue00c` Escape."""
        for plain, beyond in _BY_KEYS.findall(text):
            if plain:
                self._driver.switch_to.active_element.send_keys(plain)
            else:
                self._driver.execute_cdp_cmd("Input.insertText", {"text": beyond})

    def errors(self) -> list[str]:
        """The console's errors since the last look: scripts, resources, the content policy."""
        return [line["message"] for line in self._driver.get_log("browser") if line["level"] == "SEVERE"]

    def nameless(self) -> list[str]:
        """Roles of what a screen reader meets without a name."""
        nodes: Sequence[dict[str, Any]] = self.tell("Accessibility.getFullAXTree")["nodes"]
        return [
            node["role"]["value"]
            for node in nodes
            if not node["ignored"]
            and node["role"]["value"] in _NAMELESS
            and not _name(node)
            and not _unnamed_list(node)
        ]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the window, or of the whole page."""
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


def _name(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", "")).strip()


def _unnamed_list(node: dict[str, Any]) -> bool:
    """A list needs no name of its own; one that takes the focus does."""
    properties = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
    return node["role"]["value"] == "list" and not properties.get("focusable")


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _driver() -> str | None:
    return next(filter(None, map(shutil.which, ("chromedriver", "chromium.chromedriver"))), None)
