"""Files that a release and a public host read: citation, security, issue forms, workflows, hooks, the address."""

import importlib.util
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from documents import ROOT, broken_links

import attnpool_ref

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
ADDRESS = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PLACE = "https://example.org/someone/attnpool"
"""Stands for an address in these tests."""


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs():
    return [(path, name, job) for path in WORKFLOWS for name, job in read(path)["jobs"].items()]


def steps():
    return [(path, name, step) for path, name, job in jobs() for step in job["steps"]]


@pytest.fixture(scope="module")
def hook():
    """The module of the build's own metadata."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_workflows_are_those_of_tests_and_of_a_release():
    assert {"tests", "release"} <= {path.stem for path in WORKFLOWS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_what_the_host_needs_and_no_more_rights(path):
    workflow = read(path)
    assert workflow.keys() <= {
        "name",
        "on",
        True,
        "permissions",
        "concurrency",
        "env",
        "jobs",
    }  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "steps"} <= job.keys()
        assert set(job.get("permissions", ())) <= {"contents", "id-token", "attestations", "pages"}
        for need in [job["needs"]] if "needs" in job else []:
            assert need in workflow["jobs"]


def test_a_step_runs_a_command_or_a_named_version_of_an_action():
    for path, name, step in steps():
        assert ("run" in step) != ("uses" in step), (path.name, name)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"]), step["uses"]


def test_a_step_runs_no_text_that_a_stranger_chose():
    """Titles and branch names of a pull request would be read as shell."""
    for path, name, step in steps():
        assert "${{" not in step.get("run", ""), (path.name, name)


def test_the_targets_of_make_in_workflows_exist():
    targets = set(re.findall(r"^(\w[\w-]*):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = [
        word for _, _, step in steps() for word in re.findall(r"^make (\w[\w-]*)", step.get("run", ""), re.MULTILINE)
    ]
    assert called
    assert set(called) <= targets


def test_the_tests_run_on_three_systems_and_every_supported_python():
    tests = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    systems = {"ubuntu-latest", *tests["systems"]["strategy"]["matrix"]["os"]}
    assert {name.split("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}
    of_full = next(
        step["with"]["python-version"] for step in tests["full"]["steps"] if "python-version" in step.get("with", {})
    )
    pythons = {*of_full.split(), *tests["versions"]["strategy"]["matrix"]["python"]}
    classified = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line}
    assert pythons == classified
    assert PROJECT["requires-python"] == f">={min(classified, key=lambda one: int(one[2:]))}"


def test_paths_in_workflows_exist():
    for _, _, step in steps():
        for word in step.get("run", "").split():
            if re.match(r"(\.ci|tests|attnpool_ref|attnpool_flax)(/|$)", word):
                assert (ROOT / word).exists(), word


def test_a_release_is_built_with_attestations_and_published_without_a_token():
    release = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    uses = [step.get("uses", "") for _, name, step in steps() if name in release]
    assert any(use.startswith("actions/attest-build-provenance@") for use in uses)
    assert release["build"]["permissions"]["attestations"] == "write"
    assert release["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]),
    ],
)
def test_the_files_of_the_host_fit_their_schemas(schema, paths):
    """The schemas that check-jsonschema ships, without a network."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert paths


def test_the_hooks_run_what_lint_runs():
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]
    lint = [line.removeprefix("$(BIN)/").split() for line in recipe.split("\t")[1:]]
    commands = [[word for word in words[:2] if not word.startswith("-")] for words in lint]
    assert [
        hook["entry"].split()[: len(words)] for hook, words in zip(local["hooks"], commands, strict=True)
    ] == commands


def test_the_citation_has_the_keys_of_its_schema():
    citation = read(ROOT / "CITATION.cff")
    assert {"authors", "cff-version", "message", "title"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["version"] == attnpool_ref.__version__
    assert citation["license"] == PROJECT["license"]
    assert all(author.keys() <= {"name", "website"} for author in citation["authors"])  # an entity
    assert citation.get("repository-code", "") == ADDRESS


def test_the_changelog_tells_users_of_a_dated_release_in_at_most_25_lines():
    sections = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    newest = next(section for section in sections if not section.startswith("Unreleased\n"))
    assert re.match(rf"{re.escape(attnpool_ref.__version__)} \(\d{{4}}-\d\d-\d\d\)\n", newest)
    assert len(newest.splitlines()) <= 25


def test_no_classifier_is_unknown_or_twice():
    classifiers = PROJECT["classifiers"]
    assert classifiers == sorted(set(classifiers))
    assert {"Framework :: Pytest", "Operating System :: OS Independent", "Typing :: Typed"} <= set(classifiers)


def test_the_links_of_pages_for_the_host_lead_somewhere():
    for path in (
        *(ROOT / name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        ROOT / ".github" / "pull_request_template.md",
    ):
        assert list(broken_links(path)) == []


def test_security_names_the_limits_that_the_readers_have():
    from attnpool_ref.formats.sources import folders, safetensors

    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert safetensors.LONGEST_HEADER == folders.LONGEST_JSON == 100_000_000
    assert page.count("100 MB") == 2
    for ending in folders.PICKLED:
        assert f"`{ending}`" in page


def test_without_an_address_nothing_is_linked(hook):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert hook.linked(text, "", "1.2.3") == text
    assert hook.urls("") == {}


def test_with_an_address_every_link_of_the_readme_is_whole(hook):
    text = hook.linked((ROOT / "README.md").read_text(encoding="utf-8"), PLACE, "1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 10
    assert all(target.startswith("https://") for target in targets)
    assert f"]({PLACE}/blob/v1.2.3/docs/heads.md)" in text
    assert re.search(rf"!\[[^\]]*\]\({PLACE}/raw/v1\.2\.3/docs/pictures/\w+\.svg\)", text)
    assert hook.urls(PLACE)["Changelog"] == f"{PLACE}/blob/main/CHANGELOG.md"


def test_the_built_metadata_have_the_readme_and_the_address(tmp_path):
    """Of a copy with an address, as a release has."""
    (tmp_path / "attnpool_ref").mkdir()
    for name in ("README.md", "LICENSE", "hatch_build.py", "attnpool_ref/__init__.py"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace(f'address = "{ADDRESS}"', f'address = "{PLACE}"'))
    shown = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    metadata = yaml.safe_load(shown.stdout)  # JSON is YAML
    assert metadata["urls"]["Repository"] == PLACE
    assert metadata["readme"]["text"].startswith("# attnpool\n")
    assert f"]({PLACE}/blob/v{attnpool_ref.__version__}/SECURITY.md)" in metadata["readme"]["text"]
