"""The documentation as HTML, behind the page's help."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.docs import FOLDER, NAMES, PAGES, text_of, title_of
from memboard.tb_plugin.server.respond import finish, not_modified

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'self'"
)
"""The pages are text: nothing of theirs runs."""

_STYLE: Final = "style.css"
_SHELL: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - MemBoard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<nav aria-label="Documentation">{places}</nav>
<main>
{body}
</main>
</html>
"""


def documentation(request: Request) -> Response:
    """`/docs/*`: a page by its file's name, so that links between pages hold.

    Raises:
        NotFoundError: there is no such page.
    """
    file = request.path.rpartition("/docs/")[2] or "index.md"
    page = file.removesuffix(".md")
    if file != _STYLE and (page not in NAMES or not file.endswith(".md")):
        raise NotFoundError(
            "There is no such page of the documentation.",
            file[:80],
            "The page docs/index.md lists them all.",
        )
    kind = "text/css" if file == _STYLE else "text/html"
    body = _style() if file == _STYLE else _page(page)
    etag = sha256(body).hexdigest()[:20]
    content_type = f"{kind}; charset=utf-8"
    response = not_modified(request, etag, content_type)
    if response is None:
        response = Response(body, content_type=content_type)
        finish(response, etag)
    response.headers["Content-Security-Policy"] = POLICY
    return response


@cache
def _style() -> bytes:
    return (FOLDER / _STYLE).read_bytes()


@cache
def _page(name: str) -> bytes:
    from markdown import markdown

    tables = {"tables": {"use_align_attribute": True}}  # a style is not let through
    body = markdown(
        text_of(name),
        extensions=["tables", "fenced_code", "toc", "sane_lists"],
        extension_configs=tables,
    )
    page = _SHELL.format(title=escape(title_of(name)), places=_places(name), body=body)
    return page.encode()


def _places(shown: str) -> str:
    links = [_link("index", shown)]
    for group, names in PAGES.items():
        links += [f"<h2>{escape(group)}</h2>", *(_link(name, shown) for name in names)]
    return "\n".join(links)


def _link(name: str, shown: str) -> str:
    here = ' aria-current="page"' if name == shown else ""
    return f'<a href="{name}.md"{here}>{escape(title_of(name))}</a>'
