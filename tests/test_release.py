"""What a release consists of: versions, licenses of bundled files, the container and the workflow that publishes."""

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate.commands import all_commands
from release.check import LICENSE_FILES, ReleaseError, check_versions

ROOT = Path(__file__).parent.parent
WORKFLOWS = ROOT / ".github" / "workflows"
COMPOSE = ROOT / "deploy" / "compose.yaml"
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
CODE = {".py", ".so", ".pyd", ".pyc"}


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    text = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def write_versions(
    folder: Path, *, package: str = "1.2.3", changelog: str = "1.2.3"
) -> Path:
    (folder / "src" / "maskwise").mkdir(parents=True)
    files = {
        "pyproject.toml": '[project]\nversion = "1.2.3"\n',
        "src/maskwise/__init__.py": f'__version__ = "{package}"\n',
        "CITATION.cff": "version: 1.2.3\ndate-released: 2026-01-02\n",
        "CHANGELOG.md": f"## [Unreleased]\n\n## [{changelog}] - 2026-01-02\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_tag_has_the_version_with_a_v(tmp_path: Path) -> None:
    root = write_versions(tmp_path)
    assert check_versions(root, "v1.2.3") == "1.2.3"
    with pytest.raises(ReleaseError, match=r"v1\.2\.3, not 1\.2\.3"):
        check_versions(root, "1.2.3")


@pytest.mark.parametrize("place", ["package", "changelog"])
def test_versions_that_differ_are_named(tmp_path: Path, place: str) -> None:
    root = write_versions(tmp_path, **{place: "1.2.4"})
    with pytest.raises(ReleaseError, match=r"version 1\.2\.3, .* has .*1\.2\.4"):
        check_versions(root, "")


def test_the_notice_names_every_bundled_file() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    patterns = re.findall(r"maskwise/[\w./*]+", notice)
    files = [
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "maskwise").rglob("*")
        if path.is_file() and path.suffix not in CODE
    ]
    unnamed = [
        file
        for file in files
        if not any(fnmatch.fnmatch(file, pattern) for pattern in patterns)
    ]
    assert not unnamed, "say in NOTICE what they are and where they come from"
    unused = [
        pattern
        for pattern in patterns
        if not any(fnmatch.fnmatch(file, pattern) for file in files)
        and not (ROOT / "src" / pattern).is_dir()
    ]
    assert not unused, "NOTICE names files that are gone"


def test_license_files_are_in_the_distributions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["license-files"] == list(LICENSE_FILES)
    assert all((ROOT / name).is_file() for name in LICENSE_FILES)


def test_the_workflow_publishes_tags_only_after_all_else(
    workflow: dict[str, Any],
) -> None:
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    reusable = yaml.safe_load((WORKFLOWS / "ci.yml").read_text(encoding="utf-8"))
    assert "workflow_call" in reusable[True]


def test_publishing_uses_no_secret_but_the_identity_of_the_workflow(
    workflow: dict[str, Any],
) -> None:
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert publish["steps"][-1] == {"uses": "pypa/gh-action-pypi-publish@release/v1"}
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    others = {name: job for name, job in workflow["jobs"].items() if name != "publish"}
    assert not any("permissions" in job for job in others.values())


def test_what_is_published_is_what_was_checked(workflow: dict[str, Any]) -> None:
    jobs = workflow["jobs"]
    runs = [step["run"] for step in jobs["check"]["steps"] if "run" in step]
    assert runs == ['make release-check NEWEST=1 TAG="$GITHUB_REF_NAME"']
    uploads = [
        step["with"]["name"].replace("${{ matrix.os }}", "linux")
        for job in ("check", "wheels")
        for step in jobs[job]["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact")
    ]
    pattern = jobs["publish"]["steps"][0]["with"]["pattern"]
    wanted = pattern.strip("{}").split(",")
    published = [
        name for name in uploads if any(fnmatch.fnmatch(name, each) for each in wanted)
    ]
    assert published == ["distributions", "wheels-linux"], "the SBOM stays outside"


def test_the_container_runs_without_rights_and_has_a_volume() -> None:
    last = CONTAINERFILE.read_text(encoding="utf-8").split("\nFROM ")[-1]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.M)
    assert re.search(r"^VOLUME /data$", last, re.M)


def test_the_container_copies_files_that_exist_and_installs_declared_extras() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    copied = [
        name
        for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M)
        for name in line.split()
    ]
    assert copied
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, f"{name} does not reach the builder"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (extras,) = re.findall(r"'\.\[(.*)\]'", text)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


def test_the_services_call_commands_and_options_that_exist() -> None:
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    commands = all_commands()
    for name in ("serve", "review"):
        words = services[name]["command"]
        found = " ".join(words[:2]) if name == "review" else words[0]
        options = {option for param in commands[found].params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options
        variables = {str(param.envvar) for param in commands[found].params}
        assert set(services[name]["environment"]) <= variables


def test_services_are_open_to_their_machine_only_and_have_no_default_password() -> None:
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for key, value in service["environment"].items():
            if "TOKEN" in key or "PASSWORD" in key or "://" in value:
                assert ":?" in value, f"{key} has to be given"
    assert "ports" not in compose["services"]["database"]
    assert compose["services"]["review"]["depends_on"]["database"]
