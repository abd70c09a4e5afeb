#!/usr/bin/env python3
"""Checks the page of `maki serve` in headless Chromium, driven through its own protocol (CDP).

usage: check_page.py URL [--metrics FILE] [--numbers MAKI RUN] [--minutes M] [--screenshots DIR]

URL is the address that `maki serve` prints, with its token if it has one, such as http://127.0.0.1:8270/#token=T.
Needs only Python and Chromium. With --metrics, the metrics.jsonl of the run that the page shows first and that is being
trained, the time is measured that a point takes from the file to the screen. With --numbers, what the page shows of a
run, which is not being trained, is compared with what the program prints. With --minutes, the memory of the tab is
measured for that long while the run goes on. Prints one line per check, and exits with 1 if one fails.
"""
import argparse
import base64
import json
import math
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

OPENS_WITHIN = 200  # milliseconds
POINT_WITHIN = 1.0  # seconds
CONTRAST = 4.5      # WCAG 2.1 AA, text of usual size
WIDTHS = (400, 800, 1600)


class WebSocket:
    """The client's side of RFC 6455, as far as CDP uses it."""

    def __init__(self, url):
        parts = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((parts.hostname, parts.port))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        if b" 101 " not in head:
            raise RuntimeError(f"Chromium refused the connection: {head!r}")

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        length = len(data)
        head = (bytes([0x81, 0x80 | length]) if length < 126 else
                struct.pack(">BBH", 0x81, 0xFE, length) if length < 65536 else struct.pack(">BBQ", 0x81, 0xFF, length))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def receive(self):
        message = b""
        while True:
            first, second = self.exactly(2)
            length = second & 0x7F
            if length == 126:
                length, = struct.unpack(">H", self.exactly(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.exactly(8))
            data = self.exactly(length)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()


class Tab:
    """A tab of a Chromium of its own."""

    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not program:
            sys.exit("check_page.py needs Chromium, and there is none in PATH: install the package chromium")
        self.home = tempfile.mkdtemp(prefix="check_page")
        options = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self.home}", "--no-first-run",
                   "--disable-gpu", "--hide-scrollbars", "--enable-precise-memory-info", "--lang=en"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([program, *options, "about:blank"], **quiet)
        port_file = pathlib.Path(self.home, "DevToolsActivePort")
        wait(lambda: port_file.exists() and "\n" in port_file.read_text(), 30, "Chromium did not start")
        port = port_file.read_text().split()[0]
        tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list"))
        self.socket = WebSocket(next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"])
        self.count, self.answers, self.console, self.requests = 0, {}, [], []
        threading.Thread(target=self.listen, daemon=True).start()
        for domain in ("Page", "Runtime", "Log", "Network", "HeapProfiler"):
            self.call(f"{domain}.enable")

    def listen(self):
        try:
            while True:
                message = json.loads(self.socket.receive())
                method, params = message.get("method"), message.get("params", {})
                if "id" in message:
                    self.answers[message["id"]] = message
                elif method == "Runtime.consoleAPICalled":
                    parts = [str(part.get("value", part.get("description"))) for part in params["args"]]
                    self.console.append(" ".join(parts))
                elif method == "Runtime.exceptionThrown":
                    details = params["exceptionDetails"]
                    self.console.append(details.get("exception", {}).get("description") or details["text"])
                elif method == "Log.entryAdded":
                    self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
                elif method == "Network.requestWillBeSent":
                    self.requests.append(params["request"]["url"])
        except (EOFError, OSError):
            pass

    def call(self, method, **params):
        self.count += 1
        number = self.count
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        wait(lambda: number in self.answers, 30, f"Chromium did not answer {method}")
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, seconds=10, what=None):
        wait(lambda: self.value(f"Boolean({expression})"), seconds, what or f"never true: {expression}")

    def press(self, key, modifiers=0):
        """Presses a key; modifiers: 2 is Ctrl, 8 is Shift."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40, "Backspace": 8, "a": 65, "z": 90}
        extra = {"text": "\r"} if key == "Enter" and not modifiers else {}
        common = dict(key=key, code=key, windowsVirtualKeyCode=codes[key], modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyDown" if extra else "rawKeyDown", **common, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def set(self, selector, value):
        self.value(f"(() => {{ const control = document.querySelector({json.dumps(selector)});"
                   f"control.value = {json.dumps(str(value))}; control.dispatchEvent(new Event('input')); }})()")

    def tab_to(self, selector, most=80):
        """Presses Tab until an element has the focus, as a user without a mouse does."""
        for _ in range(most):
            if self.value(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def resize(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def heap(self):
        self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def wait(condition, seconds, message):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(message)
        time.sleep(0.002)


# The lowest contrast, as WCAG defines it, of visible text: [ratio, the text]. A background that lets others
# shine through is laid upon them. Disabled controls are exempt.
LOWEST_CONTRAST = r"""(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  let lowest = [99, ''];
  const measure = (foreground, element, text) => {
    const behind = [];
    for (let e = element; e; e = e.parentElement) behind.unshift(getComputedStyle(e).backgroundColor);
    const below = light(over(['Canvas', ...behind])), above = light(over(['Canvas', ...behind, foreground]));
    const ratio = (Math.max(below, above) + 0.05) / (Math.min(below, above) + 0.05);
    const name = `${element.tagName}.${element.className.baseVal ?? element.className}`;
    if (ratio < lowest[0]) lowest = [ratio, `${name} ${text.trim().slice(0, 40)}`];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement, style = getComputedStyle(element);
    if (!node.data.trim() || !element.checkVisibility() || element.closest(':disabled, option')) continue;
    if (element.closest('#coloured')) { // the text that is seen is that of the text area
      const { color } = getComputedStyle(document.getElementById('text'));
      if (element.id !== 'coloured') measure(color, element, node.data);
    } else measure(element.namespaceURI.endsWith('svg') ? style.fill : style.color, element, node.data);
  }
  return lowest;
})()"""

SHOWS_FACTS = "document.querySelectorAll('#facts dd').length > 1 && document.querySelector('#loss polyline') !== null"


class Checks:
    def __init__(self, tab, url, options):
        self.tab, self.url, self.options, self.failed = tab, url, options, 0

    def report(self, good, what):
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'}  {what}", flush=True)

    def run(self):
        for name in ("opens", "point", "writes", "looks_inside", "numbers", "layout", "memory", "silence"):
            try:
                getattr(self, name)()
            except (AssertionError, RuntimeError) as error:
                self.report(False, f"{name}: {error}")

    def go(self, view, more=""):
        base, _, fragment = self.url.partition("#")
        self.tab.call("Page.navigate", url="about:blank")
        self.tab.until("location.protocol === 'about:' && document.readyState === 'complete'")
        self.tab.call("Page.navigate", url=f"{base}#{view}{more}&{fragment}")
        self.tab.until(f"document.readyState === 'complete' && document.getElementById({view!r})?.hidden === false")

    def opens(self):
        loads, shown = [], []
        for _ in range(7):
            self.go("watch")
            self.tab.until(SHOWS_FACTS)
            loads.append(self.tab.value("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            shown.append(self.tab.value("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        load, paint = statistics.median(loads), statistics.median(shown)
        self.report(max(load, paint) < OPENS_WITHIN, f"opens: loaded after {load:.0f} ms, painted after {paint:.0f} ms")

    def point(self):
        if not self.options.metrics:
            return
        self.go("watch")
        self.tab.until(SHOWS_FACTS)
        self.tab.value("""window.seen = {}; new MutationObserver(() => {
          const step = document.querySelector('#facts dd').textContent.split(' ')[0].replace(/\\D/g, '');
          seen[step] ??= Date.now() / 1000;
        }).observe(document.getElementById('facts'), { childList: true, subtree: true }); 0""")
        written, end = {}, time.time() + 10
        with open(self.options.metrics) as file:
            file.seek(0, os.SEEK_END)
            while time.time() < end:
                line = file.readline()
                if not line.endswith("\n"):
                    time.sleep(0.002)
                elif json.loads(line)["kind"] == "train":
                    written[json.loads(line)["step"]] = time.time()
        time.sleep(1)
        seen = {int(step): when for step, when in self.tab.value("seen").items()}
        # A step that no redraw showed was shown by the redraw of a later one.
        delays = [min(when for other, when in seen.items() if other >= step) - start
                  for step, start in written.items() if any(other >= step for other in seen)]
        if not delays:
            raise AssertionError("the run wrote no step within 10 s")
        self.report(max(delays) < POINT_WITHIN, f"a point arrives: {len(delays)} steps, median "
                    f"{1000 * statistics.median(delays):.0f} ms, longest {1000 * max(delays):.0f} ms after its line")

    def writes(self):
        tab = self.tab
        self.go("watch")
        tab.until(SHOWS_FACTS)
        tab.tab_to("#tab-watch")
        tab.press("ArrowRight")
        tab.until("!document.getElementById('write').hidden")
        tab.tab_to("#text")
        tab.type("Once upon a time")
        start = time.monotonic()
        tab.press("Enter", 2)
        tokens = "document.querySelectorAll('#coloured .token').length"
        tab.until(f"{tokens} > 0", 20, "no token was written")
        first, early = time.monotonic() - start, tab.value(tokens)
        tab.until("document.getElementById('stop').disabled", 120, "writing does not end")
        self.report(tab.value(tokens) > early, f"streams: first token after {1000 * first:.0f} ms, {early} of "
                    f"{tab.value(tokens)} tokens shown then")
        before = tab.value("document.getElementById('text').value")
        tab.press("Home", 2)
        for _ in range(len("Once upon a time") + 2):
            tab.press("ArrowRight")
        tab.until("!document.getElementById('alternatives').hidden", 5, "no alternatives at the cursor")
        self.report(True, f"alternatives: {tab.value('document.getElementById(`alternatives`).innerText')!r}")
        self.picture("alternatives")
        tab.press("Tab")
        tab.press("ArrowDown")
        label = tab.value("document.activeElement.ariaLabel")
        tab.press("Enter")
        tab.until("document.getElementById('stop').disabled", 120)
        after = tab.value("document.getElementById('text').value")
        self.report(after != before and after.startswith("Once upon a time"), f"an alternative is chosen: {label}")
        tab.press("z", 2)
        tab.press("z", 2)
        tab.until(f"document.getElementById('text').value === {json.dumps(before)}", 5, "undo does not undo")
        tab.tab_to("#text")
        tab.press("a", 2)
        tab.type("Once upon a time")
        tab.tab_to("#score")
        tab.press("Enter")
        tab.until("document.getElementById('scored').textContent", 30, "the text is not scored")
        tab.tab_to("#compare")
        tab.press("Enter")
        tab.until("[...document.querySelectorAll('#columns .prose')].every((p) => p.querySelector('.token'))", 60,
                  "columns are not filled")
        tab.until("document.getElementById('stop').disabled", 120)
        self.report(True, "score and columns: " + tab.value("document.getElementById('scored').textContent"))

    def looks_inside(self):
        tab = self.tab
        tab.press("Home", 2)
        tab.value("document.activeElement.blur()")
        tab.tab_to("#tab-write")
        tab.press("ArrowRight")
        tab.until("document.querySelectorAll('#attention .chip').length > 1", 10, "nothing is shown inside")
        tab.tab_to("#inside-text")
        tab.press("a", 2)
        tab.press("Backspace")
        time.sleep(4)  # the page looks for runs again, and draws
        self.report(tab.value("document.getElementById('inside-text').value") == "", "an emptied field stays empty")
        tab.type("Once upon a day")
        tab.press("Enter")
        chips = "[...document.querySelectorAll('#attention .chip')].map((c) => c.textContent).join('')"
        tab.until(f"{chips}.replaceAll('␣', ' ').endsWith('day')", 10, "the new text is not shown")
        weights = "[...document.querySelectorAll('#attention .chips .number')].map((b) => b.title).join()"
        tab.tab_to("#attention .chip")
        tab.press("End")
        before = tab.value(weights)
        tab.tab_to("#attention .chips .number")
        tab.press("Enter")
        tab.until("document.activeElement.id === 'why'", 5, "a number is not explained")
        self.picture("explained")
        self.sums()
        tab.tab_to("#why .formula .number")
        tab.press("Enter")
        tab.until("document.querySelectorAll('#why td .number').length > 3", 5, "a score is not explained")
        self.sums()
        tab.tab_to("#why button:nth-of-type(2)")
        tab.press("Enter")
        tab.until("document.getElementById('why').hidden && document.activeElement.matches('.number')", 5,
                  "the focus does not return to the number")
        for name in ("layer", "head"):
            tab.value("document.getElementById('tab-inside').focus()")
            tab.tab_to(f"main [name={name}]")
            tab.press("ArrowRight")
            tab.until(f"{weights} !== {json.dumps(before)}", 5, f"{name} changes nothing")
            before = tab.value(weights)
        self.report(True, "a layer and a head are looked at, by keyboard alone")

    def sums(self):
        """The formula's right side follows from the numbers in the table below it."""
        close = self.tab.value(r"""(() => {
          const number = (cell) => Number(cell.querySelector('.number')?.title ?? cell.textContent.replaceAll(',', ''));
          const [shown] = /[-\d.eE]+$/.exec(document.querySelector('#why .formula').textContent.trim());
          const lines = [...document.querySelectorAll('#why tbody tr')].slice(0, -1);
          const rows = lines.map((line) => [...line.cells].map(number));
          const weight = document.querySelector('#why th + th').textContent === 'score';
          const score = Number(document.querySelector('#why .formula .number')?.title);
          const factor = Number(/× ([\d.]+)/.exec(document.querySelector('#why .formula').textContent)?.[1]);
          const sum = rows.reduce((all, row) => all + (weight ? Math.exp(row[1]) : row[0] * row[1]), 0);
          return [Number(shown), weight ? Math.exp(score) / sum : sum * factor];
        })()""")
        self.report(abs(close[0] - close[1]) <= 2e-3 * max(abs(close[0]), 0.01),
                    f"explained: {close[0]} is what its parts give, {close[1]:.5g}")

    def numbers(self):
        if not self.options.numbers:
            return
        maki, run = self.options.numbers
        tab, prompt, seed = self.tab, "Once upon a", 7
        chosen = f"&run={pathlib.Path(run).resolve().name}"

        def printed(*arguments):
            return json.loads(subprocess.run([maki, *arguments], check=True, capture_output=True, text=True).stdout)

        self.go("watch", chosen)
        tab.until(SHOWS_FACTS)
        facts = tab.value("[...document.querySelectorAll('#facts div')].map((fact) => fact.innerText.split('\\n'))")
        best = next(value for name, *_, value in facts if name == "Best")
        loss = float((pathlib.Path(run) / "checkpoints/best").read_text().split()[2])
        self.report(abs(float(best) - loss) < 1e-3 * loss, f"checkpoints/best: {loss:.4f}, the page shows {best}")

        self.go("write", chosen)
        tab.until("!document.getElementById('continue').disabled")
        tab.set("[name=seed]", seed)
        tab.set("[name=max_tokens]", 40)
        tab.value("document.getElementById('text').focus()")
        tab.type(prompt)
        tab.press("Enter", 2)
        tab.until("!document.getElementById('stop').disabled || document.querySelector('#coloured .token')")
        tab.until("document.getElementById('stop').disabled", 60)
        shown = tab.value("[...document.querySelectorAll('#coloured .token')].map((t) => [t.textContent, t.title])")
        answer = printed("generate", run, "--prompt", prompt, "--seed", str(seed), "--temperature", "0.8",
                         "--top-p", "1", "--max-tokens", "40", "--logprobs", "5", "--json")
        expected = [(entry["token"], 100 * math.exp(entry["logprob"])) for entry in answer["logprobs"]]
        same = len(shown) == len(expected) and all(
            text == token and abs(float(title.strip("<% ")) - percent) < 0.051
            for (text, title), (token, percent) in zip(shown, expected))
        self.report(same, f"generate: {len(expected)} tokens and their probabilities: {answer['text'][:30]!r}")

        self.go("inside", f"{chosen}&layer=1&head=1")
        tab.until("document.querySelector('#attention .number')")
        tab.value(f"document.getElementById('inside-text').value = {json.dumps(prompt)};"
                  "document.getElementById('look').requestSubmit()")
        tab.until(f"document.querySelectorAll('#tokens .chip').length === {len(prompt)}", 10,
                  "the tokens of the run are not characters, or are not shown")
        tab.value("[...document.querySelectorAll('#attention .chip')].at(-1).click()")
        weights = tab.value("[...document.querySelectorAll('#attention .chips .number')].map((b) => Number(b.title))")
        attended = printed("attend", run, "--prompt", prompt, "--layer", "1", "--head", "1", "--json")
        row = attended["weights"][0][0][-1]
        error = max(abs(a - b) for a, b in zip(weights, row))
        self.report(len(weights) == len(row) and error < 1e-6,
                    f"attend: {len(row)} weights, largest difference {error:.1e}")
        last = tab.value("[...document.querySelectorAll('#layers tr')].at(-1).lastChild.firstChild.title.split('\\n')")
        softmax = tab.value("[...document.querySelectorAll('#softmax tr')].slice(1, 6)"
                            ".map(({ cells }) => `${cells[0].innerText} ${cells[2].innerText}`)")
        self.report(last == softmax, f"the last layer and the softmax agree: {softmax[:2]}")

    def picture(self, name):
        if self.options.screenshots:
            self.tab.screenshot(pathlib.Path(self.options.screenshots, f"{name}.png"))

    def layout(self):
        tab, lowest, wide = self.tab, [99, ""], []
        for view in ("watch", "write", "inside"):
            self.go(view)
            if view == "watch":
                tab.until(SHOWS_FACTS)
            if view == "write":
                tab.until("!document.getElementById('continue').disabled")
                tab.value("document.getElementById('text').focus()")
                tab.type("Once upon a time")
                tab.press("Enter", 2)
                tab.until("document.querySelectorAll('#coloured .token').length > 5", 20)
                tab.until("document.getElementById('stop').disabled", 120)
                tab.value("document.getElementById('compare').click()")
                tab.until("document.querySelector('#columns .token')", 20)
                tab.until("document.getElementById('stop').disabled", 120)
            if view == "inside":
                tab.until("document.querySelector('#softmax .number')", 10)
                tab.value("document.querySelectorAll('#attention .chips .number')[3].click()")
            for dark in (False, True):
                for width in WIDTHS:
                    tab.resize(width, 1000, dark)
                    time.sleep(1.2)  # a redraw
                    if tab.value("document.documentElement.scrollWidth > innerWidth"):
                        wide.append(f"{view} at {width}")
                    lowest = min(lowest, tab.value(LOWEST_CONTRAST))
                    self.picture(f"{view}-{width}-{'dark' if dark else 'light'}")
        self.report(lowest[0] >= CONTRAST, f"contrast: lowest {lowest[0]:.2f}, of {lowest[1]!r}")
        self.report(not wide, f"widths {WIDTHS}, dark and light: {', '.join(wide) or 'nothing overflows'}")

    def memory(self):
        if not self.options.minutes:
            return
        self.go("watch")
        self.tab.until(SHOWS_FACTS)
        sizes, end = [], time.monotonic() + 60 * self.options.minutes
        while time.monotonic() < end:
            time.sleep(min(10, 6 * self.options.minutes))
            sizes.append(self.tab.heap() / 1e6)
        half = len(sizes) // 2
        early, late = statistics.median(sizes[:half]), statistics.median(sizes[half:])
        self.report(late < 1.2 * early + 1,
                    f"memory: {early:.2f} MB, then {late:.2f} MB, over {self.options.minutes} minutes")

    def silence(self):
        origin = urllib.parse.urlparse(self.url)
        foreign = {url for url in self.tab.requests if not url.startswith(("data:", "about:"))
                   and urllib.parse.urlparse(url).netloc != origin.netloc}
        self.report(not self.tab.console, f"console: {self.tab.console[:3] or 'no message'}")
        self.report(not foreign,
                    f"requests to other origins: {sorted(foreign)[:3] or 'none'} of {len(self.tab.requests)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--metrics")
    parser.add_argument("--numbers", nargs=2, metavar=("MAKI", "RUN"))
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--screenshots")
    options = parser.parse_args()
    if options.screenshots:
        os.makedirs(options.screenshots, exist_ok=True)
    tab = Tab()
    try:
        checks = Checks(tab, options.url, options)
        checks.run()
    finally:
        tab.close()
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
