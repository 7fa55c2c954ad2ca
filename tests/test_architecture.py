"""Rules that hold for the whole tree: what decides is pure, chance is seeded, and text never runs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("schemas", "eventlog", "producers", "streams", "learner", "rods")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

PURE = (
    "schemas/catalogue.py",
    "eventlog/connection.py",
    "schemas/conversation.py",
    "schemas/derive.py",
    "schemas/envelope.py",
    "schemas/epochs.py",
    "schemas/errors.py",
    "schemas/identity.py",
    "schemas/pool.py",
    "schemas/quick_write.py",
    "schemas/rollouts.py",
    "schemas/rules.py",
    "schemas/seals.py",
    "schemas/synthesis.py",
    "schemas/task.py",
    "schemas/topics.py",
    "rods/wrong_setting.py",
    "streams/seals/assembly.py",
    "streams/errors.py",
    "streams/measure/exact.py",
    "streams/seals/recovery.py",
    "streams/measure/barrier.py",
    "streams/measure/close.py",
    "streams/measure/fold.py",
    "streams/measure/grown.py",
    "streams/measure/outcome.py",
    "streams/measure/seal.py",
    "streams/measure/state.py",
    "streams/measure/zones.py",
    "streams/select/fold.py",
    "streams/select/select.py",
    "streams/pool/decide.py",
    "streams/pool/evidence.py",
    "streams/pool/fold.py",
    "streams/pool/member_rows.py",
    "streams/pool/state.py",
    "learner/advantage.py",
    "learner/history.py",
    "learner/in_flight.py",
    "learner/plan.py",
    "rods/reports/uplift.py",
    "rods/reports/summary.py",
)
IMPURE = {
    "aiokafka",
    "asyncio",
    "chdb",
    "clickhouse_connect",
    "datetime",
    "faust",
    "io",
    "logging",
    "mode",
    "numpy",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "torch",
    "transformers",
}
# The catalogue's own parts that read the schema files; they decide nothing.
READS_FILES = {"schemas/codec.py", "schemas/evolution.py"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
BANNED_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Full names of imported modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def project_files(tree: ast.Module) -> set[str]:
    """The project's modules that a module imports, as paths from the root; packages themselves left out."""
    imported = set(imports_of(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    paths = {module.replace(".", "/") + ".py" for module in imported if module.partition(".")[0] in PACKAGES}
    return {path for path in paths if (ROOT / path).is_file()}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", PURE)
def test_what_decides_imports_no_clock_chance_or_service(name: str) -> None:
    assert {module.partition(".")[0] for module in imports_of(tree_of(ROOT / name))} & IMPURE == set()


@pytest.mark.parametrize("name", PURE)
def test_what_decides_rests_on_what_decides(name: str) -> None:
    assert project_files(tree_of(ROOT / name)) <= set(PURE)


@pytest.mark.parametrize("name", PURE)
def test_ids_are_derived_and_never_drawn(name: str) -> None:
    drawn = {
        node.attr
        for node in ast.walk(tree_of(ROOT / name))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "uuid"
    }
    assert drawn <= {"uuid5", "UUID"}


def test_every_module_of_the_catalogue_is_pure_or_known_to_read_files() -> None:
    catalogue = {named(path) for path in MODULES if path.parent.name == "schemas" and path.name != "__init__.py"}
    assert catalogue - READS_FILES <= set(PURE)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_chance_is_drawn_from_a_seeded_generator(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            assert {alias.name for alias in node.names} <= {"Random"}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            assert node.attr == "Random"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Random", "random.Random"}:
            assert node.args, "a generator without a seed"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_text_is_ever_run(path: Path) -> None:
    tree = tree_of(path)
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert calls & BANNED_CALLS == set()
    assert {module.partition(".")[0] for module in imports_of(tree)} & BANNED_MODULES == set()
    assert "torch.load" not in {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_is_one_noun_of_readable_size(path: Path) -> None:
    assert path.stem not in VAGUE_NAMES
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_tests_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_packages_import_in_their_directions() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
