"""heed serve: what it computes, and what it refuses."""

import http.client
import json
import signal
import socket
import subprocess
import urllib.parse

import numpy as np
import pytest

from conftest import PATIENCE, SENTENCE, settle, wait_until, weights_of


@pytest.fixture(scope="module")
def server(serve) -> urllib.parse.SplitResult:
    return urllib.parse.urlsplit(serve()[1])


def request(server, method="POST", path="/api/attention", body=None, headers=None):
    """The status, the JSON or text, and the headers of the answer."""
    connection = http.client.HTTPConnection(server.hostname, server.port, timeout=PATIENCE)
    sent = {"Content-Type": "application/json", **(headers or {})}
    connection.request(method, path, body=body, headers=sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    is_json = answer.headers["Content-Type"] == "application/json"
    return answer.status, json.loads(text) if is_json else text, answer.headers


def raw(server, data: bytes) -> socket.socket:
    connection = socket.create_connection((server.hostname, server.port), timeout=PATIENCE)
    connection.sendall(data)
    return connection


def status_of(connection: socket.socket) -> int:
    with connection, connection.makefile("rb") as lines:
        return int(lines.readline().split()[1])


def ask(**arguments) -> str:
    return json.dumps({"sentence": "the cat sat", **arguments})


def test_a_typed_sentence_is_computed_by_heed(server, guard, heed):
    page = guard.open(server.geturl())
    assert page.locator('[aria-selected="true"]').inner_text() == "Worked example"
    page.fill("#ask-text", SENTENCE)
    page.fill("#ask-heads", "8")
    page.fill("#ask-seed", "3")
    page.press("#ask-text", "Enter")
    wait_until(page, "heed.sentences.length === 2")
    settle(page)
    expected = np.array(weights_of(heed, SENTENCE, "--heads", 8, "--seed", 3))
    for head in range(8):
        flat = page.evaluate("(head) => heed.weights(head)", head)
        assert np.abs(np.reshape(flat, (9, 9)) - expected[head]).max() < 1e-6
    page.fill("#ask-text", "   ")
    page.press("#ask-text", "Enter")
    wait_until(page, "document.getElementById('ask-error').textContent !== ''")
    assert "has no words" in page.inner_text("#ask-error")
    guard.faults = [fault for fault in guard.faults if "400 (Bad Request)" not in fault]


def test_the_page_has_security_headers(server):
    status, text, headers = request(server, "GET", "/")
    assert status == 200 and text.startswith("<!DOCTYPE html>")
    assert "connect-src 'self'" in text
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/..%2fetc/passwd",
                                  "/etc/passwd", "/api/../etc/passwd", "/api/attention/x", "/index.html%00", "/" + "a" * 4000])
def test_there_are_no_files(server, path):
    status, answer, _ = request(server, "GET", path)
    assert status == 404 and answer == {"error": "there is only / and /api/attention"}


def test_methods(server):
    for method, path, allowed in [("POST", "/", "GET"), ("GET", "/api/attention", "POST"), ("DELETE", "/", "GET"),
                                  ("PUT", "/api/attention", "POST"), ("OPTIONS", "/api/attention", "POST")]:
        status, answer, headers = request(server, method, path)
        assert status == 405 and headers["Allow"] == allowed and "error" in answer


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "10.0.0.1:{port}",
                                  "127.0.0.1.evil.example:{port}", "127.0.0.1:{port}x", "", "[::1", "localhost:"])
def test_foreign_hosts_are_refused(server, host):
    for method, path in [("GET", "/"), ("POST", "/api/attention")]:
        status, answer, _ = request(server, method, path, ask(), {"Host": host.format(port=server.port)})
        assert status == 403 and "Host" in answer["error"]


def test_own_hosts_are_allowed(server):
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", f"LOCALHOST:{server.port}", f"[::1]:{server.port}"):
        assert request(server, body=ask(), headers={"Host": host})[0] == 200


def test_origins(server):
    for origin in ("", "http://evil.example", "null", f"https://127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port}.evil.example"):
        status, answer, _ = request(server, body=ask(), headers={"Origin": origin})
        assert status == 403 and "another site" in answer["error"]
    assert request(server, body=ask(), headers={"Origin": f"http://127.0.0.1:{server.port}"})[0] == 200
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert request(server, body=ask(), headers={"Sec-Fetch-Site": site})[0] == status


@pytest.mark.parametrize("body, message", [
    ("", "JSON object"), ("[]", "JSON object"), ("{", "JSON object"), ("{}", "JSON object"), ('{"sentence": 3}', "JSON object"),
    ("[" * 60000, "JSON object"), (ask(sentence=" "), "no words"), (ask(sentence="a " * 513), "513 tokens"),
    (ask(heads=3), "heads is 3"), (ask(heads=0), "heads is 0"), (ask(heads=65), "heads is 65"), (ask(heads=2.5), "heads is 2.5"),
    (ask(heads="4"), "heads is"), (ask(seed=-1), "seed is -1"), (ask(seed=2**32), "seed is"), (ask(heads=None), "heads is null"),
])
def test_requests_that_make_no_sense(server, body, message):
    status, answer, _ = request(server, body=body)
    assert status == 400 and message in answer["error"]


def test_only_json_is_read(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        status, answer, _ = request(server, body=ask(), headers={"Content-Type": kind})
        assert status == 415 and "application/json" in answer["error"]


def test_long_bodies_are_refused(server):
    assert request(server, body=ask(sentence="a" * 70000))[0] == 413
    head = f"POST /api/attention HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    assert status_of(raw(server, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")) == 411


def test_what_is_not_http(server):
    for data in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        assert status_of(raw(server, data)) in (400, 403)
    assert request(server, body=ask())[0] == 200


def test_clients_that_send_half_of_it_hold_up_nobody(server):
    head = (f"POST /api/attention HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: 27\r\n\r\n")
    waiting = [raw(server, head.encode() + b'{"sentence": ') for _ in range(8)]
    assert request(server, body=ask())[0] == 200
    for connection in waiting:
        connection.sendall(b'"the cat sat"}')
    assert [status_of(connection) for connection in waiting] == [200] * 8


def test_a_request_hidden_in_the_body_of_a_refused_one_is_not_answered(server):
    inner = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    for refused in (b"POST / HTTP/1.1\r\nHost: evil.example", f"PUT / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}".encode()):
        head = refused + f"\r\nContent-Length: {60000 + len(inner)}\r\n\r\n".encode()
        with raw(server, head + b" " * 60000 + inner) as connection, connection.makefile("rb") as answers:
            answer = answers.read()
        assert answer.startswith(b"HTTP/1.1 40") and answer.count(b"HTTP/1.1") == 1


def test_it_listens_at_its_address_only(server):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=PATIENCE)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(serve, ending):
    process, url = serve()
    idle = socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(url).port), timeout=PATIENCE)
    process.send_signal(ending)
    assert process.wait(timeout=PATIENCE) == 0
    assert process.stderr.read() == ""
    idle.close()


def test_a_port_in_use(server, build):
    result = subprocess.run([build / "heed", "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1 and result.stdout == ""
    assert f"heed serve: cannot listen at http://127.0.0.1:{server.port}/" in result.stderr
    for port in ("-1", "65536", "x"):
        result = subprocess.run([build / "heed", "serve", "--port", port], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 2 and "--port" in result.stderr
