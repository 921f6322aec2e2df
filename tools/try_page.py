"""Puts the reader of logs into the page "Try it here" of the built site.

`docs/conf.py` calls it. All parts are in the page: the module of `make web`, its worker, the script
and the styles. A policy lets the page run only these and the theme's scripts, and request nothing.
"""

import gzip
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ROOT / "rust" / "web"
MODULE = ROOT / "target" / "wasm32-unknown-unknown" / "release" / "cordwood_web.wasm"

PLACE = '<div id="try"></div>'
WITHOUT = "<p>This copy of the site was built without the module that reads logs.</p>"


def packed() -> bytes:
    """The module as it is in the page, which unpacks it."""
    return gzip.compress(MODULE.read_bytes(), mtime=0)


def contents() -> str:
    """The elements of the page."""
    html, css, page, worker = (
        (PARTS / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js", "worker.js")
    )
    return (
        f'<style>{css}</style><div id="try">{html}</div>'
        f'<script type="text/plain" id="try-module">{b64encode(packed()).decode()}</script>'
        f'<script type="text/plain" id="try-worker">{worker}</script><script>{page}</script>'
    )


def policy(page: str) -> str:
    """The element that lets this page run its own scripts, and request nothing once it is loaded."""
    scripts = re.findall(r"<script(?![^>]*\b(?:src|type)=)[^>]*>(.*?)</script>", page, re.DOTALL)
    hashes = {f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts}
    rules = [
        "default-src 'none'",
        f"script-src 'self' 'wasm-unsafe-eval' {' '.join(sorted(hashes))}",
        "worker-src blob:",
        "connect-src 'none'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
    ]
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def complete(path: Path) -> None:
    """Completes the page at `path`, if there is a module to put into it."""
    page = path.read_text(encoding="utf-8")
    if page.count(PLACE) != 1:
        raise ValueError(f"{path} has no {PLACE}")
    page = page.replace(PLACE, contents() if MODULE.exists() else WITHOUT)
    path.write_text(re.sub("<head>", lambda head: head[0] + policy(page), page, count=1), encoding="utf-8")
