"""The workflows are pinned, modest in what they may do, and run what the README says."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
USES = re.compile(r"^\s*(?:- )?uses: (?P<action>[\w./-]+)@(?P<commit>\S+)(?: # (?P<version>v\d[\w.]*))?$", re.MULTILINE)
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def load(path: Path) -> dict[Any, Any]:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(workflow, dict), f"{path.name} is no workflow"
    return workflow


def triggers(workflow: dict[Any, Any]) -> dict[str, Any]:
    """What starts it; YAML 1.1 reads the key `on` as true."""
    return dict(workflow[True])


def writes(permissions: Any) -> set[str]:
    """The scopes in which a permissions block may change something."""
    if isinstance(permissions, str):
        return set() if permissions in ("read-all", "none") else {permissions}
    return {scope for scope, level in (permissions or {}).items() if level == "write"}


def runs(workflow: str, job: str) -> list[str]:
    """What the steps of a job run in a shell."""
    steps = load(ROOT / ".github" / "workflows" / workflow)["jobs"][job]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_there_are_workflows_to_build_to_publish_to_count_and_to_look_after() -> None:
    """All are there; every test that takes a workflow reads them, and any other that is added."""
    assert {path.name for path in WORKFLOWS} >= {"ci.yml", "pages.yml", "count.yml", "weekly.yml"}


@every_workflow
def test_every_action_is_pinned_to_the_commit_in_the_sources(path: Path) -> None:
    """A full commit with its version beside it, the one that content/sources.toml names."""
    sources = ROOT / "content" / "sources.toml"
    assert sources.is_file(), "content/sources.toml is missing: its table [actions] names each action's commit"
    known = tomllib.loads(sources.read_text(encoding="utf-8")).get("actions")
    assert known, "content/sources.toml has no table [actions]"
    text = path.read_text(encoding="utf-8")
    found = list(USES.finditer(text))
    assert len(found) == text.count("uses:") > 0, f"{path.name}: a `uses:` that this test can't read"
    for use in found:
        assert re.fullmatch(r"[0-9a-f]{40}", use["commit"]), f"{use['action']} is not pinned to a full commit"
        assert known.get(use["action"]) == use["commit"], f"{use['action']} differs from content/sources.toml"
        assert use["version"], f"{use['action']}: the version belongs beside the commit"


@every_workflow
def test_a_workflow_may_only_read_but_for_the_deployment(path: Path) -> None:
    """The default is stated and reads; only the job that deploys the pages may write, and only that."""
    workflow = load(path)
    assert workflow.get("permissions") == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        deploys = (path.name, name) == ("pages.yml", "deploy")
        assert writes(job.get("permissions")) == ({"pages", "id-token"} if deploys else set()), name


@every_workflow
def test_a_workflow_is_safe_to_run_for_a_fork(path: Path) -> None:
    """No privileged trigger, no secret, no credentials left in the checkout, nothing pasted into a shell."""
    workflow = load(path)
    assert set(triggers(workflow)) <= {"pull_request", "push", "schedule", "workflow_dispatch"}
    assert "secrets." not in path.read_text(encoding="utf-8")
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", ""), "hand values to a script through env"


@every_workflow
def test_every_job_ends_in_time(path: Path) -> None:
    """A hanging job is stopped."""
    for name, job in load(path)["jobs"].items():
        assert 1 <= job.get("timeout-minutes", 0) <= 60, name


def test_a_newer_build_cancels_the_older_and_deployments_queue() -> None:
    """Builds of a branch replace each other; a deployment under way is never cut off."""
    builds = load(ROOT / ".github" / "workflows" / "ci.yml")["concurrency"]
    assert builds["cancel-in-progress"] is True
    assert "github.ref" in builds["group"]
    assert load(ROOT / ".github" / "workflows" / "pages.yml")["concurrency"] == {
        "group": "pages",
        "cancel-in-progress": False,
    }


def test_changes_are_tested_and_only_main_is_published() -> None:
    """Every pull request and every push to main is tested; only main is deployed."""
    tested = triggers(load(ROOT / ".github" / "workflows" / "ci.yml"))
    assert set(tested) == {"pull_request", "push"}
    published = triggers(load(ROOT / ".github" / "workflows" / "pages.yml"))
    assert published["push"] == {"branches": ["main"]}
    assert "pull_request" not in published


def test_the_test_job_runs_the_readmes_test_line() -> None:
    """CI has no commands of its own: it runs .ci/run, which runs the README's line."""
    assert runs("ci.yml", "test") == ["bash .ci/run"]


def test_ci_holds_the_tests_to_the_branches_that_they_take() -> None:
    """By the line of CONTRIBUTING, whose last part fails below what pyproject.toml asks for."""
    (line,) = (line for line in runs("ci.yml", "coverage") if "coverage" in line)
    assert f"| branches | `{line}`" in (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["coverage"]["run"]["branch"]
    assert project["tool"]["coverage"]["report"]["fail_under"] >= 95


def test_nothing_is_deployed_that_was_not_tested() -> None:
    """The deployment waits for the commit's tests and for its build, and no condition lets it run after a failure."""
    jobs = load(ROOT / ".github" / "workflows" / "pages.yml")["jobs"]
    assert runs("pages.yml", "test") == ["bash .ci/run"]
    assert set(jobs["deploy"]["needs"]) == {"test", "build"}
    for name, job in jobs.items():
        assert "if" not in job, f"{name}: a condition such as always() would run it after a failure"
        assert "continue-on-error" not in str(job), f"{name}: what fails must end the deployment"


def test_a_week_without_a_change_is_looked_at_too() -> None:
    """Once a week and at will, on main alone: a pull request never waits for it."""
    started = triggers(load(ROOT / ".github" / "workflows" / "weekly.yml"))
    assert set(started) == {"schedule", "workflow_dispatch"}
    (schedule,) = started["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])


def test_dead_links_outside_are_told_and_block_nothing() -> None:
    """The list goes to the job's summary, and the step may fail."""
    steps = load(ROOT / ".github" / "workflows" / "weekly.yml")["jobs"]["links"]["steps"]
    (asked,) = [step for step in steps if "check --external" in step.get("run", "")]
    assert asked["continue-on-error"] is True
    assert '--external 2>&1 | tee -a "$GITHUB_STEP_SUMMARY"' in asked["run"]


def test_the_newest_dependencies_are_tried_without_the_lock() -> None:
    """What pyproject.toml allows, as new as there is, under the command that ends the README's test line."""
    commands = "\n".join(runs("weekly.yml", "newest"))
    assert "requirements.lock" not in commands
    assert '--upgrade --upgrade-strategy eager -e ".[test]"' in commands
    (line,) = re.findall(r"^python3 -m venv .* -m pytest$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert runs("weekly.yml", "newest")[-2] == line.rsplit(" && ", 1)[1]
    assert runs("weekly.yml", "newest")[-1] == f"{line.rsplit(' && ', 1)[1]} tests/benchmarks --benchmark-disable"
    assert "continue-on-error" not in str(load(ROOT / ".github" / "workflows" / "weekly.yml")["jobs"]["newest"])


def readme_with(folder: Path, text: str | None) -> subprocess.CompletedProcess[str]:
    """Run a copy of .ci/run beside a README of this text."""
    (folder / ".ci").mkdir()
    (folder / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    if text is not None:
        (folder / "README.md").write_text(text, encoding="utf-8")
    return subprocess.run(["bash", ".ci/run"], cwd=folder, capture_output=True, text=True, check=False)


def test_ci_runs_exactly_the_line_and_says_so(tmp_path: Path) -> None:
    """The line is printed and run as it is, with CI=true; other blocks are left alone."""
    line = "echo \"CI is $CI\" && echo '-m' -m pytest"
    done = readme_with(tmp_path, f"# x\n```sh\nexit 3\n```\ntext -m pytest\n```sh\n{line}\n```\n")
    assert (done.returncode, done.stdout) == (0, f"+ {line}\nCI is true\n-m -m pytest\n")


def test_ci_fails_when_the_line_fails(tmp_path: Path) -> None:
    """The exit status is that of the line."""
    assert readme_with(tmp_path, "```sh\nfalse && echo -m pytest\n```\n").returncode == 1


@pytest.mark.parametrize("text", [None, "# No line\n", "```sh\na -m pytest\nb -m pytest\n```\n"])
def test_ci_fails_clearly_without_one_line(tmp_path: Path, text: str | None) -> None:
    """A missing README, none or two such lines is an error, never a silent success."""
    done = readme_with(tmp_path, text)
    assert done.returncode == 1
    assert "README.md" in done.stderr


def readme_line(end: str) -> str:
    """The one line of the README, alone in its block, that begins with an environment of its own and ends like this."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = [block.strip() for block in blocks]
    (line,) = [line for line in lines if line.startswith("python3 -m venv") and line.endswith(end)]
    assert "\n" not in line
    return line


def test_the_readme_holds_the_lines_that_are_promised() -> None:
    """Three lines: one builds and serves, one tests, one counts; they install alike, and the last more than that."""
    serve, tests, count = map(readme_line, ("lesson serve", "-m pytest", "-m tests.independent.count"))
    assert serve.rsplit(" && ", 1)[0] == tests.rsplit(" && ", 1)[0] == count.rsplit(" && ", 2)[0]


def test_the_count_is_made_anew_every_week() -> None:
    """The count needs PyTorch, so it has a workflow of its own, which runs the README's line on a schedule."""
    workflow = load(ROOT / ".github" / "workflows" / "count.yml")
    assert set(triggers(workflow)) == {"schedule", "workflow_dispatch"}
    (schedule,) = triggers(workflow)["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    (job,) = workflow["jobs"].values()
    (run,) = [step["run"] for step in job["steps"] if "run" in step]
    assert run.strip() == readme_line("-m tests.independent.count")


def test_a_pull_request_is_told_what_it_does_to_the_numbers() -> None:
    """The job summary holds the diff against the base, which the checkout must have; a second build is compared."""
    job = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["build"]
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    commands = runs("ci.yml", "build")
    (told,) = [run for run in commands if "numbers --diff" in run]
    assert told.endswith('>> "$GITHUB_STEP_SUMMARY"')
    assert "--format markdown" in told
    # an expression in a shell line could be made to run what a branch is called
    assert not [run for run in commands if "${{" in run]
    assert [run for run in commands if "diff --recursive" in run]


def test_a_pull_request_leaves_the_whole_site_to_look_at() -> None:
    """The artifact is the folder that was built, without a base address: unzipped, it opens from the disk."""
    steps = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["build"]["steps"]
    (upload,) = [step["with"] for step in steps if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert upload["path"] == "_site"
    assert upload["if-no-files-found"] == "error"
    (built,) = [run for run in runs("ci.yml", "build") if run.startswith(".venv/bin/lesson build")]
    assert built == ".venv/bin/lesson build --out _site"
