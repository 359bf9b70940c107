"""Opens the page of `slope inspect --format html` in headless Chromium, clicks through two callees, looks at what is shown.

    check_page.py SLOPE SCREENSHOT.png

Exit status 77, with the reason, where Chromium or chromedriver is not installed: the test counts as skipped.
Talks to chromedriver over its HTTP protocol (https://www.w3.org/TR/webdriver2/), with the standard library alone.
"""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SCRIPT = """\
half(x) = x / 2
scaled(x) = half(x) * 3
function loss(w)
    s = 0
    for i in 1:length(w)
        s += scaled(w[i])
    end
    s
end
"""
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SKIPPED = 77


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", what)


class Browser:
    """One session of one chromedriver."""

    def __init__(self, driver, chromium):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        arguments = ["--headless=new", "--window-size=1400,1000", "--disable-gpu", "--disable-dev-shm-usage"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # which refuses to run as root
        options = {"goog:chromeOptions": {"binary": chromium, "args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(100):
            try:
                if self.request("GET", "/status")["ready"]:
                    break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        self.session = "/session/" + self.request("POST", "/session", {"capabilities": {"alwaysMatch": options}})["sessionId"]

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as problem:
            raise RuntimeError(problem.read().decode()) from problem

    def open(self, url):
        self.request("POST", self.session + "/url", {"url": url})

    def run(self, code, *arguments):
        return self.request("POST", self.session + "/execute/sync", {"script": code, "args": list(arguments)})

    def click(self, selector):
        """A real click: fails when the element is hidden or covered."""
        found = self.request("POST", self.session + "/element", {"using": "css selector", "value": selector})
        self.request("POST", f"{self.session}/element/{found[ELEMENT]}/click", {})

    def screenshot(self):
        return base64.b64decode(self.request("GET", self.session + "/screenshot"))

    def errors(self):
        return [entry for entry in self.request("POST", self.session + "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self):
        try:
            self.request("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(10)


SHOWN = "return [...document.querySelectorAll('section')].filter(s => s.offsetHeight > 0).map(s => s.querySelector('h2').textContent)"
VIEW = "return [...document.querySelectorAll('section.shown .pane[data-kind=' + arguments[0] + '] pre')].filter(p => p.offsetHeight > 0).map(p => p.textContent)"


def shown_when(browser, expected):
    """What is shown once it is as expected, or what it is after a while: the page learns of a click a little later."""
    for _ in range(50):
        if browser.run(SHOWN) == expected:
            break
        time.sleep(0.1)
    return browser.run(SHOWN)


def look_at(browser, page, screenshot, check):
    browser.open("file://" + page)
    shown = browser.run(SHOWN)
    check(shown == ["loss(::Vector{Float64}) :: Union{Float64, Int64}"], f"the call itself is shown first, alone: {shown}")
    boxes = browser.run("return [...document.querySelectorAll('section.shown .pane')].map(p => {let r = p.getBoundingClientRect(); return [r.left, r.right, r.top, r.height]})")
    check(len(boxes) == 2 and boxes[0][1] <= boxes[1][0] and abs(boxes[0][2] - boxes[1][2]) < 2 and min(boxes[0][3], boxes[1][3]) > 50,
          f"the two columns stand side by side: {boxes}")
    ir, machine = browser.run(VIEW, "ir"), browser.run(VIEW, "machine")
    check(len(ir) == 1 and ir[0].startswith("MethodInstance for loss"), "the typed code is on the left")
    check(len(machine) == 1 and "define" in machine[0], "LLVM is on the right")
    picture = browser.screenshot()
    with open(screenshot, "wb") as out:
        out.write(picture)
    width, height = struct.unpack(">II", picture[16:24]) if picture.startswith(b"\x89PNG\r\n\x1a\n") else (0, 0)
    check(width > 1000 and height > 500, f"the screenshot is a picture: {width} by {height}")
    exact = browser.run("return [...document.querySelectorAll('section.shown .source span.exact')].map(s => [s.textContent, s.title])")
    check(["scaled(w[i])", "Float64"] in exact, f"expressions say their types on hover: {exact}")

    follow = "return [...document.querySelectorAll('section.shown ul.calls a')].map(a => [a.getAttribute('href'), a.textContent])"
    for name in ("scaled(::Float64)", "half(::Float64)"):
        links = [href for href, text in browser.run(follow) if text.startswith(name)]
        check(len(links) == 1, f"there is a link to {name}")
        if not links:
            return
        browser.click(f"section.shown ul.calls a[href='{links[0]}']")
        shown = shown_when(browser, [name + " :: Float64"])
        check(shown == [name + " :: Float64"], f"the link shows {name}: {shown}")
    browser.click("section.shown .pane[data-kind=ir] button[data-view=typed]")
    ir = browser.run(VIEW, "ir")
    check(len(ir) == 1 and ir[0].startswith("function half typed"), "a view is chosen by its name")
    browser.run("history.back()")
    caller = ["scaled(::Float64) :: Float64"]
    check(shown_when(browser, caller) == caller, "the browser's way back goes to the caller")
    check(browser.run(VIEW, "ir")[0].startswith("function scaled typed"), "the view stays chosen")
    problems = browser.errors()
    check(not problems, f"the page raises no errors: {problems}")


def tell_counts(passed, failed):
    """To `./dev test`, which takes a test without counts for one that did not come to its end."""
    if "SLOPE_TEST_COUNTS" in os.environ:
        with open(os.environ["SLOPE_TEST_COUNTS"], "w") as out:
            out.write(f"{passed} {failed}\n")


def main():
    slope, screenshot = sys.argv[1:3]
    driver = shutil.which("chromedriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not driver or not chromium:
        print("skipped: chromium and chromedriver are not installed (Debian: apt install chromium chromium-driver)")
        tell_counts(0, 0)
        return SKIPPED
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        script, page = os.path.join(folder, "loss.slope"), os.path.join(folder, "loss.html")
        with open(script, "w") as out:
            out.write(SCRIPT)
        with open(page, "w") as out:
            subprocess.run([slope, "inspect", script, "--function", "loss(::Vector{Float64})", "--format", "html"], stdout=out, check=True)
        browser = Browser(driver, chromium)
        try:
            look_at(browser, page, screenshot, check)
        finally:
            browser.close()
    print(f"{check.passed} checks passed, {check.failed} failed; screenshot: {screenshot}")
    tell_counts(check.passed, check.failed)
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
