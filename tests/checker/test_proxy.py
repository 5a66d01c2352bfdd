"""The proxy lets everything through when it is calm, and does to an exchange what its plan says."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.checker.proxy import CALM, Fault, Proxy, Weather

LARGE = bytes(range(256)) * 2000


class Heard(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_PUT(self) -> None:
        try:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        except OSError:
            return
        if len(body) < int(self.headers["Content-Length"]):
            self.close_connection = True
            return
        self.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(LARGE)))
        self.end_headers()
        self.wfile.write(LARGE)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the library's
        return


@pytest.fixture
def heard() -> Iterator[tuple[list[bytes], Proxy]]:
    handler = type("Mine", (Heard,), {"bodies": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    proxy = Proxy(("127.0.0.1", server.server_port), seed=1)
    yield handler.bodies, proxy
    proxy.close()
    server.shutdown()
    serving.join(10)
    server.server_close()


def test_calm_weather_changes_nothing(heard: tuple[list[bytes], Proxy]) -> None:
    bodies, proxy = heard
    with httpx.Client(base_url=proxy.url) as client:
        for number in range(3):
            assert client.put("/", content=LARGE[: 1000 * number]).content == LARGE
    assert bodies == [b"", LARGE[:1000], LARGE[:2000]]


@pytest.mark.parametrize(
    ("weather", "heard_of", "answered"),
    [
        (Weather(refuse=1000), 0, False),
        (Weather(cut_request=1000), 0, False),
        (Weather(lose_answer=1000), 1, False),
        (Weather(cut_answer=1000), 1, False),
        (Weather(repeat=1000), 2, True),
        (Weather(delay=1000, delay_max_s=0.01), 1, True),
    ],
)
def test_a_fault_is_what_it_says(heard: tuple[list[bytes], Proxy], weather: Weather, heard_of: int, answered: bool) -> None:
    bodies, proxy = heard
    proxy.weather = weather
    with httpx.Client(base_url=proxy.url) as client:
        if answered:
            assert client.put("/", content=LARGE).content == LARGE
        else:
            with pytest.raises(httpx.TransportError):
                client.put("/", content=LARGE)
        assert bodies == [LARGE] * heard_of
        proxy.heal()
        assert client.put("/", content=b"after").content == LARGE
    assert proxy.faults[Fault.NONE] == 1


def test_a_network_that_is_cut_lets_nothing_through_until_it_is_back(heard: tuple[list[bytes], Proxy]) -> None:
    bodies, proxy = heard
    with httpx.Client(base_url=proxy.url) as client:
        client.put("/", content=b"before")
        proxy.cut()
        with pytest.raises(httpx.TransportError):
            client.put("/", content=b"lost")
        proxy.join_again()
        client.put("/", content=b"after")
    assert bodies == [b"before", b"after"]
    assert proxy.weather is CALM
