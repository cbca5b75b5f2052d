"""The report in a real browser: every chart is drawn, nothing fails, nothing is cut off."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tamarack_lab.report.page import page
from tamarack_lab.results import read

EXAMPLE = Path(__file__).parent / "data" / "example"
BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome")
                if (found := shutil.which(name))), None)
SECONDS = 600
SCHEMES = {"light": "1", "dark": "0"}
# Added to the page for the test alone: how wide it really is, and what the drawings' ink is.
PROBE = """<script>{
  const root = document.documentElement;
  const look = () => {
    parent.postMessage({
      ...root.dataset,
      inner: window.innerWidth,
      wide: root.scrollWidth > window.innerWidth ? "too wide" : "fits",
      page: getComputedStyle(document.body).backgroundColor,
      marks: root.outerHTML.split('class="marks"').length - 1,
    }, "*");
  };
  new MutationObserver(look).observe(root, { attributeFilter: ["data-drawn", "data-failed"] });
  look();
}</script></body>"""
# No window of the browser is narrower than 500 pixels: the page stands in a frame.
FRAME = """<!doctype html><html><body style="margin: 0">
<iframe src="report.html#all" style="border: 0; width: {width}px; height: 900px"></iframe>
<script>
  addEventListener("message", event => {{
    for (const [name, value] of Object.entries(event.data))
      document.documentElement.dataset[name] = value;
  }});
</script></body></html>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    results = read(EXAMPLE)
    before, _, after = page(results).rpartition("</body>")
    file.write_text(before + PROBE + after)
    return file


def opened(report: Path, width: int, scheme: str, profile: Path) -> tuple[str, str]:
    """The document after its scripts ran, and what the browser said on the way."""
    assert BROWSER
    frame = report.with_name(f"frame-{width}.html")
    frame.write_text(FRAME.format(width=width))
    done = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         f"--user-data-dir={profile}", "--window-size=1400,1000",
         f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0",
         "--virtual-time-budget=60000", "--dump-dom", f"file://{frame}"],
        capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_every_chart_is_drawn_without_a_complaint(
    report: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    dom, said = opened(report, width, scheme, tmp_path / "profile")
    root = re.search(r"<html[^>]*>", dom)
    assert root, said
    facts = dict(re.findall(r'data-([a-z]+)="([^"]*)"', root.group()))
    assert int(facts["charts"]) >= 20
    assert facts["drawn"] == facts["charts"]
    assert "failed" not in facts
    assert (facts["inner"], facts["wide"]) == (str(width), "fits")
    assert facts["page"] == {"light": "rgb(245, 247, 248)", "dark": "rgb(15, 20, 24)"}[scheme]
    assert int(facts["marks"]) >= int(facts["charts"])
    # Refused by the page's policy, or thrown by a script: the browser would say so.
    complaints = [line for line in said.splitlines() if "CONSOLE" in line]
    assert complaints == []
