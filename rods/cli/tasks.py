"""``rods tasks``: list and show task sources, verify ground truths, judge recorded calls."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.run_log import Json
from rods.errors import UserError

if TYPE_CHECKING:
    from producers.environments.port import TaskSource
    from schemas.task import TaskDefinition

app = typer.Typer(no_args_is_help=True, help="Task sources: list, show, verify ground truths, judge recorded calls.")

Source = Annotated[str, typer.Option("--source", help="workbench or bfcl")]


@app.command("list")
def list_tasks(
    source: Source = "workbench",
    split: Annotated[str, typer.Option(help="train, heldout or all")] = "all",
    as_json: Json = False,
) -> None:
    """Lists the tasks of a source."""
    with _user_errors():
        for name, task in _split_tasks(_source(source), split):
            row = _row(name, task)
            typer.echo(json.dumps(row) if as_json else _line(row))


@app.command("show")
def show_task(task: str, source: Source = "workbench", as_json: Json = False) -> None:
    """Shows one task whole: what the user says and which calls are right, turn by turn."""
    with _user_errors():
        found = _by_id(_source(source)).get(task)
    if found is None:
        raise UserError(f"the source {source} has no task {task[:200]!r}; `rods tasks list` names them")
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    typer.echo(f"{found.task}  {found.category}  scenario {found.scenario}  {' '.join(found.classes)}")
    for number, turn in enumerate(found.turns):
        typer.echo(f"turn {number}" + (f"  (withheld: {', '.join(turn.withheld)})" if turn.withheld else ""))
        for line in (*turn.requests, *(f"  {call}" for call in turn.ground_truth)):
            typer.echo(f"  {line}")


@app.command("verify")
def verify_tasks(
    source: Source = "workbench",
    tasks: Annotated[Path | None, typer.Option("--tasks", help="a task file instead of the source's tasks")] = None,
    cases: Annotated[int, typer.Option(min=0, max=1_000_000, help="bfcl: corruptions to compare on")] = 8000,
    seed: Annotated[int, typer.Option(min=0, help="bfcl: seed of the corruptions")] = 1,
    as_json: Json = False,
) -> None:
    """Re-executes ground truths; for bfcl, compares verdicts with the package's own checker. Exit code 1: a flaw."""
    with _user_errors():
        chosen = _read_tasks(tasks) if tasks else [task for _, task in _split_tasks(_source(source), "all")]
        failed = _failed_truths(chosen)
        report: dict[str, Any] = {
            "source": str(tasks) if tasks else source,
            "tasks": len(chosen),
            "ground_truths_passed": len(chosen) - len(failed),
            "failed": failed,
        }
        if source == "bfcl" and not tasks and cases:
            report |= _compared(chosen, seed, cases)
    typer.echo(json.dumps(report) if as_json else _report(report))
    if failed or report.get("disagreements"):
        raise typer.Exit(1)


@app.command("judge")
def judge_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines: task and turns, each a list of calls")],
    source: Source,
    as_json: Json = False,
) -> None:
    """Scores recorded tool calls turn by turn, in the order of the file.

    A turn after the first failed one, and a turn the record does not reach, counts as failed.
    """
    from producers.environments.judge import score
    from producers.environments.records import read_recorded

    with _user_errors():
        chosen = _source(source)
        known = _by_id(chosen)
        for record in read_recorded(file, known):
            task = known[record.task]
            turns = score(chosen.reset(task), task.turns_total, record.turns)
            verdict = {
                "task": task.task,
                "turns": list(turns),
                "turns_passed": sum(turns),
                "turns_total": len(turns),
                "passed": all(turns),
            }
            typer.echo(json.dumps(verdict) if as_json else _verdict(verdict))


@contextmanager
def _user_errors() -> Iterator[None]:
    from producers.environments.errors import EnvironmentFault, TaskSourceError

    try:
        yield
    except (TaskSourceError, EnvironmentFault) as error:
        raise UserError(str(error)) from None


def _source(name: str) -> "TaskSource":
    from producers.environments.sources import source_named

    return source_named(name)


def _read_tasks(path: Path) -> "Sequence[TaskDefinition]":
    from producers.environments.taskfile import read_tasks

    return read_tasks(path)


def _split_tasks(source: "TaskSource", split: str) -> "Iterator[tuple[str, TaskDefinition]]":
    from producers.environments.sources import SPLITS

    for name in SPLITS if split == "all" else (split,):
        for task in source.tasks(name):
            yield name, task


def _by_id(source: "TaskSource") -> "dict[str, TaskDefinition]":
    return {task.task: task for _, task in _split_tasks(source, "all")}


def _failed_truths(tasks: "Sequence[TaskDefinition]") -> list[str]:
    """The tasks whose own ground truth does not pass, or cannot be run."""
    from producers.environments.errors import EnvironmentFault
    from producers.environments.judge import score

    sources = {name: _source(name) for name in {task.source for task in tasks}}
    failed = []
    for task in tasks:
        truth = [turn.ground_truth for turn in task.turns]
        try:
            passed = all(score(sources[task.source].reset(task), task.turns_total, truth))
        except EnvironmentFault:
            passed = False
        if not passed:
            failed.append(task.task)
    return failed


def _compared(tasks: "Sequence[TaskDefinition]", seed: int, count: int) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import Progress

    from producers.environments.bfcl.comparison import compare
    from producers.environments.corruption import corrupted_cases

    cases = list(corrupted_cases(tasks, seed, count))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("corruptions", total=count)
        found = compare(tasks, cases, lambda done: progress.advance(bar, done))
    return {
        "seed": seed,
        "corruptions": found.cases,
        "corruptions_agreed": found.cases - len(found.disagreements),
        "corruptions_valid": found.valid,
        "disagreements": [asdict(one) for one in found.disagreements],
        "seconds": round(found.seconds, 3),
        "reference_seconds": round(found.reference_seconds, 3),
        "ratio": round(found.ratio, 2),
    }


def _row(split: str, task: "TaskDefinition") -> dict[str, Any]:
    return {
        "task": task.task,
        "source": task.source,
        "split": split,
        "category": task.category,
        "scenario": task.scenario,
        "classes": list(task.classes),
        "turns_total": task.turns_total,
        "calls": sum(len(turn.ground_truth) for turn in task.turns),
    }


def _line(row: dict[str, Any]) -> str:
    classes = " ".join(row["classes"])
    return (
        f"{row['task']}  {row['split']}  {row['category']}  {row['turns_total']} turns  {row['calls']} calls  {classes}"
    )


def _verdict(verdict: dict[str, Any]) -> str:
    marks = "".join("+" if passed else "-" for passed in verdict["turns"])
    return f"{verdict['task']}  {marks}  {verdict['turns_passed']}/{verdict['turns_total']}"


def _report(report: dict[str, Any]) -> str:
    lines = [f"{report['ground_truths_passed']} of {report['tasks']} ground truths pass"]
    lines += [f"  fails: {task}" for task in report["failed"][:20]]
    if "corruptions" in report:
        lines.append(
            f"{report['corruptions_agreed']} of {report['corruptions']} corruptions (seed {report['seed']}):"
            " verdict and first failed turn agree with the package's checker"
        )
        lines += [f"  differs: {one}" for one in report["disagreements"][:20]]
        lines.append(
            f"{report['ratio']} times as fast as the package's checker"
            f" ({report['seconds']} s against {report['reference_seconds']} s)"
        )
    return "\n".join(lines)
