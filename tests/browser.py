"""A headless Chromium for tests and for pictures of pages. Nothing is ever downloaded."""

import base64
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.programs import need

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)

WAIT_S = 60  # for a machine under load; nothing waits for it when all is well
# What stands in the elements on the screen that a selector finds; nothing while a page or its frame is loading.
_TEXTS = """if (document.readyState !== "complete") return "";
    const found = [...document.querySelectorAll(arguments[0])].filter(each => each.checkVisibility());
    return found.length + ": " + found.map(each => each.value || each.innerText || each.naturalWidth || "")
      .join(" | ")"""
Step = tuple[str, dict[str, str]]


@contextmanager
def chromium(*, width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Chrome]:
    """A browser with a profile of its own, that keeps what pages write to the console."""
    binary, driver = need("chromium"), need("chromedriver")
    profile = tempfile.mkdtemp(prefix="chromium-")
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()
        shutil.rmtree(profile, ignore_errors=True)


@contextmanager
def screen(browser: Chrome, width: int = 1280, *, dark: bool = False) -> Iterator[None]:
    """A screen that is as wide, also narrower than a window can be made, and dark or light."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def walk(browser: Chrome, *steps: Step) -> None:
    """Do something, and wait until each selector finds what it should; then the next.

    A selector or an XPath clicks an element, but enters an `iframe`; `SELECTOR := KEYS` types, an address opens
    a page, `reload` loads it again. What is found is told as `2: TEXT | TEXT`, and should have a pattern.
    """
    for deed, seen in steps:
        where, typed, keys = deed.partition(" := ")
        by = By.XPATH if where.startswith("//") else By.CSS_SELECTOR
        if deed == "reload":
            browser.refresh()
        elif deed.startswith("http:"):
            browser.get(deed)
        elif deed == "iframe":
            browser.switch_to.frame(browser.find_element(by, where))
        elif typed:
            browser.find_element(by, where).send_keys(keys)
        else:
            browser.find_element(by, where).click()
        for selector, pattern in seen.items():
            wait_for(browser, selector, pattern)


def wait_for(browser: Chrome, selector: str, pattern: str) -> None:
    """Wait until what a selector finds has a pattern."""
    WebDriverWait(browser, WAIT_S).until(
        lambda page: re.search(pattern, page.execute_script(_TEXTS, selector), re.DOTALL),
        f"{selector} never has {pattern}",
    )


def brightness(browser: Chrome, selector: str, property_: str) -> int:
    """How bright a colour of an element is, from 0 to 255."""
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    colour = browser.execute_script(script, selector, property_)
    return sum(map(int, re.findall(r"\d+", colour)[:3])) // 3


def shoot(browser: Chrome, file: Path, *, width: int, height: int | None = None) -> None:
    """A picture of the page: of all of it, or of its first `height` pixels."""
    browser.set_window_size(width, 900)
    whole = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height or whole, "scale": 1}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    data = browser.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
    file.write_bytes(base64.b64decode(data))
