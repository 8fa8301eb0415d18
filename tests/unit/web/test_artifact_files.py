"""`GET /mcp/jobs/{id}/artifacts/{name}`: a file as its owner downloads it."""

from __future__ import annotations

from typing import Any

import pytest

from shared.jobs import keys, model
from shared.jobs.artifacts import JobArtifacts
from shared.jobs.model import Job
from tests.unit.web.support import OTHER, Web, body

DATA = b"0123456789"


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def job(web: Web) -> Job:
    job = web.store.write(model.claim(web.bench.job(web.bench.submit()), model.utc_now(), 60_000))
    files = JobArtifacts(job, web.store, lambda: None)
    files.write("a.html", DATA, "text/html")
    files.write("empty.bin", b"")
    return job


def get(web: Web, job: Job | str, name: str = "a.html", **options: Any) -> Any:
    return web("artifact", job, name=name, **options)


def test_a_file_is_a_download_and_never_shown_in_place(web: Web, job: Job) -> None:
    answer = get(web, job)
    assert (answer.status_code, answer.get_body(), answer.mimetype) == (200, DATA, "text/html")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="a.html"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].startswith("sandbox")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["ETag"]
    assert web.took == 2
    assert get(web, job, "empty.bin").get_body() == b""


@pytest.mark.parametrize(
    ("asked", "part", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=0-0", b"0", "bytes 0-0/10"),
        ("bytes=9-", b"9", "bytes 9-9/10"),
        ("bytes=4-", b"456789", "bytes 4-9/10"),
        ("bytes=4-400", b"456789", "bytes 4-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=-400", DATA, "bytes 0-9/10"),
        ("Bytes = 2 - 3", b"23", "bytes 2-3/10"),
    ],
)
def test_a_part(asked: str, part: bytes, told: str, web: Web, job: Job) -> None:
    answer = get(web, job, headers={"Range": asked})
    assert (answer.status_code, answer.get_body(), answer.headers["Content-Range"]) == (206, part, told)
    assert answer.headers["Content-Security-Policy"].startswith("sandbox")


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_part_that_is_not_there(asked: str, web: Web, job: Job) -> None:
    answer = get(web, job, headers={"Range": asked})
    assert (answer.status_code, answer.headers["Content-Range"]) == (416, "bytes */10")
    assert body(answer) == {"error": "The file has 10 bytes"}
    assert get(web, job, "empty.bin", headers={"Range": "bytes=0-"}).status_code == 416


@pytest.mark.parametrize(
    "asked",
    ["", "bytes=", "bytes=-", "bytes=3-2", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes=٣-", "bytes=0"],
)
def test_an_odd_range_is_the_whole(asked: str, web: Web, job: Job) -> None:
    answer = get(web, job, headers={"Range": asked})
    assert (answer.status_code, answer.get_body()) == (200, DATA)


def test_a_download_that_is_resumed_is_not_pieced_together_from_two_files(web: Web, job: Job) -> None:
    etag = get(web, job).headers["ETag"]
    resumed = {"Range": "bytes=5-", "If-Range": etag}
    assert get(web, job, headers=resumed).status_code == 206
    JobArtifacts(job, web.store, lambda: None).write("a.html", b"another file")
    answer = get(web, job, headers=resumed)
    assert (answer.status_code, answer.get_body()) == (200, b"another file")
    for other in (f"W/{answer.headers['ETag']}", "Mon, 30 Nov 2026 00:00:00 GMT"):
        assert get(web, job, headers={**resumed, "If-Range": other}).status_code == 200


def test_head_tells_of_the_file_without_it(web: Web, job: Job) -> None:
    whole = get(web, job)
    answer = get(web, job, method="HEAD", headers={"Range": "bytes=0-1"})
    assert (answer.status_code, answer.get_body()) == (200, b"")
    assert answer.headers["Content-Length"] == "10"
    assert answer.headers["ETag"] == whole.headers["ETag"]
    assert answer.mimetype == "text/html"
    assert get(web, job, "none", method="HEAD").status_code == 404


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_stranger_learns_nothing(method: str, web: Web, job: Job) -> None:
    for one, name in ((job, "a.html"), (job, "none"), (keys.new_job_id(), "a.html"), ("malformed", "a.html")):
        answer = get(web, one, name, token=OTHER, method=method)
        assert (answer.status_code, body(answer)) == (404, {"error": "Job not found"})


@pytest.mark.parametrize("name", ["none", "", "..", "../in", "in", "a b"])
def test_what_is_no_file_is_not_found(name: str, web: Web, job: Job) -> None:
    answer = get(web, job, name)
    assert (answer.status_code, body(answer)) == (404, {"error": "Artifact not found"})
