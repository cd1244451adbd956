"""Test of the built site in Chromium (``make site-test``): opens every page and prints what is wrong.

A page must load only from its own host and without an error in the console. All its formulas must be rendered. It must
not be wider than the window of a phone (390 pixels) or of a desktop (1280), and its blocks of code not wider than their
boxes. Its links must lead to a page or a place. A
search must find the expected page, and the interactive page must compute the oracle's numbers.

The last line says how many pages were checked, or that no browser was found. The exit status is 1 if something is
wrong.
"""

import argparse
import asyncio
import functools
import http.server
import math
import os
import re
import shutil
import sys
import threading
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag

from playwright.async_api import TimeoutError, async_playwright

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
WIDTHS, HEIGHT = (1280, 390), 800
AT_ONCE = 4
"""Number of pages that are open at the same time."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

SEARCHES = {
    "sparsemax": "reference/sparsemax",
    "heat map": "guides/pathology",
    "ABMIL": "guides/pathology",
    "torch": "judging",
    "bfloat16": "deploying",
    "CLAM": "guides/pathology",
    "SGPT": "guides/sentence-embeddings",
    "SPLADE": "guides/sentence-embeddings",
    "ECAPA-TDNN": "guides/speech",
    "GeM": "guides/vision",
    "SigLIP": "guides/vision",
    "PMA": "guides/graphs",
    "global_mean_pool": "guides/graphs",
    "late interaction": "guides/retrieval",
    "AutoPool": "reference/softmax_pooling",
    "mean_pooling": "reference/mean_pooling",
    "MAP head": "reference/modules/MAPHead",
    "ColBERT": "guides/retrieval",
    "left padding": "guides/sentence-embeddings",
    "NetVLAD": "reference/modules/VLADPool",
    "lengths": "masks",
    "segment_ids": "masks",
    "NaN": "masks",
    "waiver": "judging",
    "group by": "reference/segment_mean_pooling",
    "pandas": "reference/segment_mean_pooling",
    "document": "reference/segment_mean_pooling",
    "attention_po": "reference/attention_pooling",
}
"""Words for a search, and the page that must be among the first three results."""

FORMULAS = """async () => {
    const all = [...document.querySelectorAll(".math")];
    if (!all.length) return {all: 0, raw: [], wrong: []};
    if (!window.MathJax || !MathJax.startup) return {all: all.length, raw: ["MathJax is not there"], wrong: []};
    await MathJax.startup.promise;
    const wrong = document.querySelectorAll("mjx-merror, [data-mjx-error], mjx-container [style*='color: red']");
    return {
        all: all.length,
        raw: all.filter(one => !one.querySelector("mjx-container")).map(one => one.textContent.trim()),
        wrong: [...wrong].map(one => [...MathJax.startup.document.math].find(
            formula => formula.typesetRoot.contains(one)).math),
    };
}"""
"""Counts formulas, and lists those that are not rendered, are rendered as an error, or have an unknown macro."""

TOO_WIDE = """() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return "";
    const inside = one => one && (getComputedStyle(one).overflowX !== "visible" || inside(one.parentElement));
    const wide = [...document.querySelectorAll("main *, footer *")].filter(
        one => one.getBoundingClientRect().right > root.clientWidth + 1 && !inside(one));
    const texts = wide.map(one => `<${one.tagName} class="${one.className}"> ${one.textContent.trim().slice(0, 40)}`);
    return `${root.scrollWidth} > ${root.clientWidth}: ${texts.at(-1)}`;
}"""
"""Returns why a page is wider than the window, or an empty text."""

CUT = """() => [...document.querySelectorAll("pre")].filter(one => one.scrollWidth > one.clientWidth + 1).map(
    one => `a block of code is wider than its box: ${one.textContent.trim().slice(0, 40)}`)"""
"""Lists blocks of code that a reader must scroll to the side."""

BROKEN_KEYS = """() => new Set([...document.querySelectorAll(".search-button-field kbd")].map(one => one.offsetHeight)).size > 1
    ? ["a key of the search breaks"] : []"""
"""Lists a key with a line break in the hint of the search: the keys then differ in height."""

FIRST_SCREEN = """() => ["article table", ".buttons a:last-child"].filter(
    kind => !(document.querySelector(kind)?.getBoundingClientRect().bottom <= innerHeight)).map(
    kind => `its first screen lacks ${kind}`)"""
"""Lists what a reader of the first page sees only after scrolling: the table of results, or the buttons."""

WITHOUT_ICON = """() => [...document.querySelectorAll(".fa-solid, .fa-brands")].filter(
    one => getComputedStyle(one, "::before").maskImage === "none").map(one => `an icon has no picture: ${one.className}`)"""
"""Lists icons of the theme that ``site.css`` does not have."""

CHANGED_IN_THE_DARK = """() => {
    document.documentElement.dataset.theme = "dark";
    return [...document.querySelectorAll("article img")].filter(one => getComputedStyle(one).filter !== "none" || getComputedStyle(one).backgroundColor !== "rgba(0, 0, 0, 0)").map(
        one => `a picture is changed by the theme: ${one.src}`);
}"""
"""Lists pictures whose colors the theme changes on a dark page, although they follow the color scheme themselves."""

ON_A_PHONE = """() => {
    const bottom = document.querySelector(".points svg").getBoundingClientRect().bottom;
    return [document.documentElement.className, bottom - document.querySelector("#length").getBoundingClientRect().top];
}"""
"""Returns the colors of the interactive page, and the height of its sliders and points together."""

LINKS = "() => [...document.querySelectorAll('a[href]')].map(one => one.href)"
IDS = "() => [...document.querySelectorAll('[id]')].map(one => one.id)"
RESULTS = "() => [...document.querySelectorAll('#search-results li > a')].slice(0, 3).map(one => one.href)"

EXCERPTS = "() => [...document.querySelectorAll('#search-results .context')].map(one => one.textContent)"


class Walk:
    """One test of the site: what was opened, and what is wrong."""

    def __init__(self, context, home):
        self.context, self.home = context, home
        self.wrong, self.formulas = [], 0
        self.links, self.ids = {}, {}

    def complain(self, page, text):
        """Notes something wrong with a page."""
        self.wrong.append(f"{page.removeprefix(self.home)}: {text}")

    async def opened(self, url):
        """Opens a page, and records its errors and requests."""
        page = await self.context.new_page()
        page.on("console", lambda message: message.type == "error" and self.complain(url, f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complain(url, f"script: {error}"))
        page.on("request", lambda request: self.foreign(request.url) and self.complain(url, f"asks {request.url}"))
        page.on(
            "response", lambda answer: answer.status >= 400 and self.complain(url, f"{answer.status}: {answer.url}")
        )
        await page.goto(url, wait_until="load")
        return page

    def foreign(self, url):
        """Returns whether an address is on another host."""
        return not url.startswith((self.home, "data:", "blob:"))

    async def look(self, url):
        """Opens one page and tests all of it."""
        page = await self.opened(url)
        seen = await page.evaluate(FORMULAS)
        self.formulas += seen["all"]
        for text in seen["raw"]:
            self.complain(url, f"a formula is not rendered: {text}")
        for text in seen["wrong"]:
            self.complain(url, f"a formula is in error: {text}")
        await page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
        if url == f"{self.home}index.html":
            for text in await page.evaluate(FIRST_SCREEN):
                self.complain(url, text)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            for text in [text for script in (CUT, BROKEN_KEYS, WITHOUT_ICON) for text in await page.evaluate(script)]:
                self.complain(url, f"at {width} pixels {text}")
            reason = await page.evaluate(TOO_WIDE)
            if reason:
                self.complain(url, f"scrolls to the side at {width} pixels: {reason}")
        for text in await page.evaluate(CHANGED_IN_THE_DARK):
            self.complain(url, text)
        self.links[url] = set(await page.evaluate(LINKS))
        if not {urldefrag(link)[0] for link in self.links[url]} & {self.home, f"{self.home}index.html"}:
            self.complain(url, "it has no way home")
        self.ids[url] = set(await page.evaluate(IDS))
        await page.close()

    async def search(self, words, wanted):
        """Searches for some words as a reader does, and tests the first three results."""
        url = f"{self.home}search.html?q={quote(words)}"
        page = await self.opened(url)
        await page.wait_for_function(
            "() => document.querySelector('#search-results .search-summary')?.textContent.match(/found|match/)"
        )
        results = [urldefrag(link)[0].removeprefix(self.home) for link in await page.evaluate(RESULTS)]
        if f"{wanted}.html" not in results[:3]:
            self.complain(url, f"{words!r} does not find {wanted} among the first three: {results}")
        if len(results) > 10 or len(set(results)) < len(results):
            self.complain(url, f"{words!r} finds more than ten pages, or a page twice: {results}")
        await page.wait_for_load_state("networkidle")
        for text in await page.evaluate(EXCERPTS):
            if re.search(r"\\[(\[a-z]", text):
                self.complain(url, f"an excerpt has raw LaTeX: {text}")
        await page.close()

    async def interact(self):
        """Uses the interactive page, and makes it compute the oracle's stored cases."""
        url = f"{self.home}interactive/index.html?check"
        page = await self.opened(url)
        await page.wait_for_function("() => document.documentElement.dataset.check")
        said = await page.evaluate("() => document.documentElement.dataset.check")
        if not re.match(r"pass: [2-9]\d+ cases", said):
            self.complain(url, f"the oracle's numbers are others: {said}")
        points = await page.get_attribute("#plane", "aria-label")
        (x, y), (wrong_x, wrong_y) = re.findall(r"\((.*?),(.*?)\)", points.replace("\N{MINUS SIGN}", "-"))
        if math.dist((float(x), float(y)), (float(wrong_x), float(wrong_y))) < 1:
            self.complain(url, f"the first mistake hardly moves the point: {points}")
        heights = await page.evaluate("() => [...document.querySelectorAll('.card')].map(one => one.offsetHeight)")
        if len(set(heights)) > 1:
            self.complain(url, f"its cards differ in height: {heights}")
        for name in ("length", "token-0-1"):
            await page.fill(f"#{name}", "5")
        changed = await page.get_attribute("#plane", "aria-label")
        await page.click("[type=reset]")
        await page.wait_for_timeout(100)
        if points == changed or points != await page.get_attribute("#plane", "aria-label"):
            self.complain(url, f"a change and a reset do not lead back: {points}, {changed}")
        await page.close()
        page = await self.opened(f"{self.home}project/interactive.html")
        await page.set_viewport_size({"width": WIDTHS[1], "height": HEIGHT})
        for mode in ("light", "dark"):
            await page.evaluate("mode => document.documentElement.dataset.theme = mode", mode)
            await page.wait_for_timeout(100)
            colors, height = await page.frames[1].evaluate(ON_A_PHONE)
            if mode not in colors.split() or height > HEIGHT / 2:
                self.complain(page.url, f"on a {mode} site it is {colors}; sliders and points take {height} pixels")
        await page.close()

    async def type(self):
        """Types a part of a name into the search of a page, and waits for results without a further key."""
        page = await self.opened(f"{self.home}install.html")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("attention_po")
        try:
            await page.wait_for_selector("#search-results li a[href*='reference/attention_pooling']", timeout=9000)
        except TimeoutError:
            self.complain(page.url, "no results appear while one types")
        await page.close()

    async def follow(self):
        """Requests every address on this host that a page links to, and looks for the place in it."""
        first_from = {link: url for url, links in self.links.items() for link in links if not self.foreign(link)}
        for link, url in first_from.items():
            target, place = urldefrag(link)
            if target not in self.ids and (await self.context.request.get(target)).status >= 400:
                self.complain(url, f"a link leads nowhere: {link}")
            elif place and unquote(place) not in self.ids.get(target, [unquote(place)]):
                self.complain(url, f"a link leads to no place of its page: {link}")


async def walk(browser, home, pages):
    """Tests all pages and searches, some at the same time, and returns the result."""
    async with async_playwright() as play:
        chromium = await play.chromium.launch(executable_path=browser, args=FLAGS)
        walked = Walk(await chromium.new_context(viewport={"width": WIDTHS[0], "height": HEIGHT}), home)
        gate = asyncio.Semaphore(AT_ONCE)

        async def gated(step):
            async with gate:
                await step

        steps = [walked.look(home + page) for page in pages]
        steps += [walked.search(words, wanted) for words, wanted in SEARCHES.items()]
        steps += [walked.interact(), walked.type()]
        await asyncio.gather(*map(gated, steps))
        await walked.follow()
        walked.version = chromium.version
        await chromium.close()
    return walked


def found_browser():
    """Returns the path of Chromium, from the variable CHROMIUM, the path or Playwright; None if there is none."""
    named = [os.environ[name] for name in ("CHROMIUM", "PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH") if os.environ.get(name)]
    own = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    installed = sorted(map(str, own.glob("chromium-*/chrome-*/chrome")))
    return next(filter(None, [*map(shutil.which, [*named, *BROWSERS]), *installed]), None)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Server of files without log messages."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Ignores a log message."""


def main(arguments=None):
    """Tests the site, prints what is wrong, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=SITE, help="the folder of the built site")
    site = parser.parse_args(arguments).site
    browser = found_browser()
    if browser is None:
        print("the site was not opened: no browser was found")
        return 0
    pages = sorted(
        path.relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if not {"_static", "_modules"} & {*path.parts}
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        walked = asyncio.run(walk(browser, f"http://127.0.0.1:{server.server_port}/", pages))
        server.shutdown()
    for line in walked.wrong:
        print(line)
    seen = f"{len(pages)} pages, {walked.formulas} formulas, {len(SEARCHES)} searches in Chromium {walked.version}"
    print(f"the site has {len(walked.wrong)} mistakes: {seen}" if walked.wrong else f"the site was opened: {seen}")
    return 1 if walked.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
