# SPDX-License-Identifier: MIT
"""What the tests of the server share."""
import pytest

pytest.register_assert_rewrite("api_schema", "serving")  # so that their asserts show both values

from drawings import SERVER
from serving import Server, draw


@pytest.fixture(name="serve")
def serve_fixture():
    """serve(path, *options) starts a server that is stopped, well, at the end of the test."""
    running = []

    def start(path, *options, **settings):
        running.append(Server(path, *options, **settings))
        return running[-1]
    yield start
    for server in running:
        if server.process.poll() is None:
            status, said = server.stop()
            assert status == 0, said


@pytest.fixture(name="file")
def file_fixture(tmp_path):
    return draw(tmp_path / "drawn.cairn", SERVER)


@pytest.fixture(name="server")
def server_fixture(serve, file):
    return serve(file)
