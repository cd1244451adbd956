"""The pages about ports: their programs run, print what is shown, and the lines of the protocol follow its schema."""

import json
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import jsonschema
import numpy as np
import pytest
from command import python
from documents import ROOT, assert_shown_is_printed, blocks_of, shell_lines

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import vectors
from attnpool_ref.conformance.candidates.adapters.program_arrays import decoded, encoded
from attnpool_ref.conformance.candidates.program import Program
from attnpool_ref.conformance.vectors.hazards import HAZARDS

GUIDE = (ROOT / "docs" / "guides" / "porting.md").read_text(encoding="utf-8")
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
VECTORS = (ROOT / "docs" / "vectors.md").read_text(encoding="utf-8")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")


@pytest.fixture
def written(current_folder):
    """The files of the guide, in the current folder: the port as it is first, and the rest."""
    for text in blocks_of(GUIDE, "js"):
        name = re.match(r"// (\w+\.js)\n", text)
        if name:
            (current_folder / name[1]).write_text(text)
    return current_folder


def corrected(text):
    """The port with the lines that the guide puts in their place."""
    (lines,) = (block for block in blocks_of(GUIDE, "js") if not block.startswith("//"))
    wrong = re.search(r"        const keep .*?\n        count \+= keep\n", text, re.DOTALL)
    assert wrong is not None
    return text.replace(wrong[0], lines).replace("sum / count", "count ? sum / count : 0")


@needs_node
def test_the_port_of_the_guide_fails_as_is_shown_and_then_passes(written):
    (check,) = (line for line in shell_lines(GUIDE) if "--command" in line)
    words = ["attnpool_ref", "check", "--command", "node my_port.js", *check.split("'")[2].split()]
    (shown,) = blocks_of(GUIDE, "text")
    wrong = python("-c", "import os; os.environ['COLUMNS'] = '100'; import runpy, sys; sys.argv = sys.argv[1:]; "
                   "runpy.run_module('attnpool_ref', run_name='__main__')", *words)  # fmt: skip
    assert wrong.returncode == 1, wrong.stderr
    assert_shown_is_printed(shown, wrong.stdout)
    (written / "my_port.js").write_text(corrected((written / "my_port.js").read_text()))
    right = python("-m", *words[:4], "--as", "mean_pooling")
    assert right.returncode == 0, right.stdout


@needs_node
def test_the_reader_of_vectors_accepts_the_right_port_and_rejects_the_first_one(written):
    vectors.write(["mean_pooling"], "vectors")
    wrong = subprocess.run(["node", "check_vectors.js"], capture_output=True, text=True, check=False)
    groups = {line.partition(",")[0] for line in wrong.stdout.splitlines()}
    assert wrong.returncode == 1
    assert groups == {"a fully masked row", "NaN under the mask", "large numbers under the mask"}
    (written / "my_port.js").write_text(corrected((written / "my_port.js").read_text()))
    right = subprocess.run(["node", "check_vectors.js"], capture_output=True, text=True, check=False)
    assert (right.returncode, right.stdout, right.stderr) == (0, "", "")


class Server(BaseHTTPRequestHandler):
    """A server that pools the tokens of a request by their mean; it refuses a batch of seven."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        x, mask = decoded(asked["tokens"]), decoded(asked["mask"]) if "mask" in asked else None
        self.send_response(200 if len(x) != 7 else 500)
        self.end_headers()
        self.wfile.write(json.dumps(encoded(attnpool_ref.mean_pooling(x, mask))).encode())

    def log_message(self, *_):
        """Logs nothing."""


@needs_node
def test_a_server_behind_http_is_called_by_the_script_of_the_guide(written):
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        pool = Program(f"node http.js http://127.0.0.1:{server.server_port}/").callables("boolean")["mean_pooling"]
        x, mask = np.array([[[1.5, np.nan], [3, 2]]], np.float32), np.array([[True, True]])
        (result,) = pool(x=x, mask=mask)
        assert np.array_equal(result, [[2.25, np.nan]], equal_nan=True)
        with pytest.raises(Exception, match="status 500"):
            pool(x=np.ones((7, 1, 1), np.float32))
    finally:
        server.shutdown()
        server.server_close()


def transcript():
    """Returns (sent, answer) of each exchange on the page, as lines."""
    (text,) = blocks_of(PROTOCOL, "text")
    lines = text.splitlines()
    assert [line[:2] for line in lines] == ["> ", "< "] * (len(lines) // 2)
    return [(ours[2:], theirs[2:]) for ours, theirs in zip(lines[::2], lines[1::2], strict=True)]


@needs_cc
def test_the_transcript_is_what_the_port_in_c_answers(tmp_path):
    source = ROOT / "examples" / "ports" / "port.c"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "port", source], check=True)
    sent = "".join(f"{ours}\n" for ours, _ in transcript())
    done = subprocess.run([tmp_path / "port"], input=sent, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [theirs for _, theirs in transcript()]


def test_the_lines_of_the_protocol_follow_its_schema():
    (text,) = blocks_of(PROTOCOL, "json")
    schema = json.loads(text)
    lines = [json.loads(line) for exchange in transcript() for line in exchange]
    program = Program(f"{sys.executable} {ROOT / 'tests' / 'support' / 'program_of_a_test.py'} base64")
    call = program.callables("boolean")["mean_pooling"].request(7, {"x": np.ones((1, 2, 3)), "scale": 0.5, "axis": -1})
    for line in (*lines, call, json.loads(program.first_line)):
        jsonschema.validate(line, schema)
    for wrong in ({"id": 1}, {"id": 1, "results": [], "error": ""}, {"functions": ["mean_pooling"]}, {"attnpool": 2}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_page_of_vectors_lists_their_functions_and_groups():
    listed = re.findall(r"^\* (\w+): (.*)\.$", VECTORS, re.MULTILINE)
    assert [family for family, _ in listed] == list(vectors.FAMILIES)
    names = {family: re.findall(r"`(\w+)`", functions) for family, functions in listed}
    assert {name for of in names.values() for name in of} == set(vectors.known_names())
    assert all(table.get(name).family == family for family, of in names.items() for name in of)
    rows = re.findall(r"^\| (.*) \| (.*) \|$", VECTORS.partition("\n## Groups\n")[2], re.MULTILINE)
    assert rows[2:] == [(hazard.name, hazard.says) for hazard in HAZARDS]
