"""The page without TensorBoard: the plugin's routes on a server of our own."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest

from memboard.tb_plugin.cli.open.standalone import PAGE, PREFIX, Standalone
from memboard.tb_plugin.index.logdirs import OpenedPaths
from tests.builders import RunBuilder
from tests.tb_plugin.client import decode_envelope


@pytest.fixture
def server(tmp_path):
    RunBuilder(tmp_path / "runs" / "exp").simple(2, 3)
    with Standalone(
        OpenedPaths(folders=(str(tmp_path / "runs"),)), "localhost", 0
    ) as alone:
        yield alone


def bare(
    server: Standalone, path: str, method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    """An answer to somebody without a cookie."""
    at = urlsplit(server.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def address(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def cookie_for(link: str, server: Standalone, **headers: str) -> str:
    """What a browser sends back once a link has let it in."""
    let_in = bare(server, address(link), **headers)
    assert let_in.status == 200
    return let_in.headers["Set-Cookie"].partition(";")[0]


def ask(
    server: Standalone, path: str, method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    """An answer to whoever opened the link."""
    cookie = cookie_for(server.link(""), server)
    return bare(server, path, method, Cookie=cookie, **headers)


def test_the_page_its_assets_and_its_data_are_served(server):
    page = ask(server, PAGE)
    assert page.status == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    runs = ask(server, f"{PREFIX}/runs")
    (run,) = decode_envelope(runs.read())["runs"]
    assert (run["name"], run["num_ranks"]) == ("runs/exp", 2)
    assert ask(server, f"{PREFIX}/assets/none.js").status == 404
    assert ask(server, f"{PREFIX}/docs/settings.md").status == 200
    assert ask(server, "/favicon.ico").status == 204, "no error in the console"
    assert ask(server, f"{PREFIX}/drop").status == 405


def test_its_root_leads_to_the_page_and_all_else_to_nothing(server):
    root = ask(server, "/")
    assert (root.status, root.headers["Location"]) == (302, PAGE.lstrip("/"))
    for path in ("/data/plugins_listing", f"{PREFIX}/", "/../etc/passwd"):
        assert ask(server, path).status == 404


@pytest.fixture(scope="module")
def behind_a_proxy():
    hosts = "https://hub.example/user/ada"
    with Standalone(OpenedPaths(), "127.0.0.1", 0, hosts) as alone:
        yield alone


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST.:6006", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:6006", 200),
        ("hub.example:443", 200),
        ("user@localhost", 403),
        ("10.0.0.1", 403),
        ("evil.example", 403),
        ("evil.example:6006", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_a_strangers_name_for_this_machine_is_refused(behind_a_proxy, host, status):
    server, seen = behind_a_proxy, host.rpartition(":")[2]
    name = f"memboard-{urlsplit(server.url).port}"
    name += f"-{seen}" if seen.isdigit() else ""
    token = parse_qs(urlsplit(server.link("")).query)["token"][0]
    for path in (PAGE, f"{PREFIX}/runs", f"{PREFIX}/index.js", "/"):
        answer = bare(server, path, Host=host, Cookie=f"{name}={token}")
        refused = answer.status == 403
        assert refused == (status == 403), (path, answer.read())
        if refused and "evil" in host:
            said = answer.read().decode()
            assert "evil.example" in said
            assert "--hosts=" in said


def test_without_the_token_nothing_is_served(server):
    paths = [
        PREFIX + route.replace("*", "x") for route in server.plugin.get_plugin_apps()
    ]
    for path in ("/", "/favicon.ico", "/nothing", *paths):
        for method in ("GET", "HEAD", "POST"):
            for word in ("", "?token=", "?token=wrong", "?token=%F0%9F%98%80"):
                answer = bare(server, path + word, method, Cookie="memboard-1=x")
                assert answer.status == 403, (method, path, word)
    shown = bare(server, PAGE, Accept="text/html").read().decode()
    assert "memboard open" in shown
    assert "Traceback" not in shown


def test_the_token_becomes_a_cookie_that_only_this_server_and_no_script_reads(server):
    link = server.link("view=trace")
    assert link.endswith("#view=trace")
    let_in = bare(server, address(link))
    cookie = let_in.headers["Set-Cookie"]
    port = urlsplit(server.url).port
    assert cookie.startswith(f"memboard-{port}=")
    for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert word in cookie
    assert "Domain" not in cookie
    assert let_in.headers["Referrer-Policy"] == "no-referrer"
    assert let_in.headers["Cache-Control"] == "no-store"
    token = parse_qs(urlsplit(link).query)["token"][0]
    assert token not in let_in.read().decode()
    name, _, value = cookie.partition(";")[0].partition("=")
    for wrong in (value[:-1], value + "x", "", value.swapcase()):
        assert bare(server, PAGE, Cookie=f"{name}={wrong}").status == 403
    assert bare(server, PAGE, Cookie=f"{name}=old; {name}={value}").status == 200


def test_two_servers_and_a_tunnel_have_cookies_of_their_own(server, tmp_path):
    with Standalone(OpenedPaths(folders=(str(tmp_path),)), "localhost", 0) as other:
        both = "; ".join(cookie_for(one.link(""), one) for one in (server, other))
        for one in (server, other):
            assert bare(one, f"{PREFIX}/runs", Cookie=both).status == 200
        assert (
            bare(server, PAGE, Cookie=cookie_for(other.link(""), other)).status == 403
        )
    through = cookie_for(server.link(""), server, Host="localhost:9999")
    assert through.partition("=")[0] != both.partition("=")[0]
    answer = bare(server, PAGE, Cookie=f"{both}; {through}", Host="localhost:9999")
    assert answer.status == 200


def test_a_link_for_one_browser_lets_in_no_second_one(server):
    link = server.link("", once=True)
    assert link != server.link("")
    assert bare(server, address(link), "HEAD").status == 403, (
        "it is not spent by a look"
    )
    cookie = cookie_for(link, server)
    assert bare(server, address(link)).status == 403
    assert bare(server, address(link), Cookie=cookie).status == 200
    assert bare(server, f"{PREFIX}/runs", Cookie=cookie).status == 200
    unneeded = address(server.link("", once=True))
    assert bare(server, unneeded, Cookie=cookie).status == 200
    assert bare(server, unneeded).status == 403


def test_unchanged_answers_heads_and_ranges_go_on_as_before(server):
    first = ask(server, f"{PREFIX}/runs")
    tag = {"If-None-Match": first.headers["ETag"]}
    assert ask(server, f"{PREFIX}/runs", **tag).status == 304
    head = ask(server, PAGE, "HEAD")
    assert (head.status, head.read()) == (200, b"")


@pytest.mark.parametrize(
    ("host", "read"), [("::1", 403), ("127.0.0.2", 403), ("0.0.0.0", 200)]
)
def test_files_are_taken_under_own_names_wherever_it_listens(host, read):
    try:
        server = Standalone(OpenedPaths(), host, 0)
    except OSError:
        pytest.skip(f"{host} is not there")
    with server:
        headers = {
            "Cookie": cookie_for(server.link(""), server),
            "Host": "evil.example",
        }
        assert bare(server, f"{PREFIX}/runs", **headers).status == read
        dropped = bare(server, f"{PREFIX}/drop", "POST", **headers)
        assert dropped.status == 403
        assert "evil.example" in dropped.read().decode()


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="taken"):
            Standalone(OpenedPaths(), "127.0.0.1", taken.getsockname()[1])


def test_after_the_block_nothing_listens(tmp_path):
    with Standalone(OpenedPaths(folders=(str(tmp_path),)), "localhost", 0) as alone:
        urllib.request.urlopen(alone.link(""), timeout=120).close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(alone.url, timeout=120)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no such signals")
def test_an_interruption_ends_the_wait_whichever_thread_it_reaches(server, monkeypatch):
    other = server._thread.ident
    assert other is not None
    waits, wait = threading.Event(), server._ended.wait
    monkeypatch.setattr(
        server._ended, "wait", lambda seconds: waits.set() or wait(seconds)
    )

    def interrupt() -> None:
        assert waits.wait(60)  # before that it would end the tests
        time.sleep(0.3)
        signal.pthread_kill(other, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    server.wait()
    assert server._thread.is_alive(), "the wait ended, and not the server"
