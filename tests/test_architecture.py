"""Rules that hold for the whole tree: what decides is pure, chance is seeded, and text never runs."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("schemas", "eventlog", "producers", "streams", "learner", "rods")
MODULES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TREES = {name: ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in MODULES}

PURE = (
    "schemas/catalogue.py",
    "eventlog/connection.py",
    "eventlog/errors.py",
    "eventlog/fence.py",
    "eventlog/offsets.py",
    "schemas/conversation.py",
    "schemas/derive.py",
    "schemas/envelope.py",
    "schemas/epochs.py",
    "schemas/errors.py",
    "schemas/identity.py",
    "schemas/pool.py",
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
    "streams/measure/view.py",
    "streams/measure/zones.py",
    "streams/select/fold.py",
    "streams/select/select.py",
    "streams/pool/decide.py",
    "streams/pool/evidence.py",
    "streams/pool/fold.py",
    "streams/pool/replay.py",
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


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Full names of imported modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def project_files(tree: ast.Module) -> set[str]:
    """The project's modules that a module imports, as paths from the root; packages themselves left out."""
    imported = set(imports_of(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    paths = {module.replace(".", "/") + ".py" for module in imported if module.partition(".")[0] in PACKAGES}
    return {path for path in paths if (ROOT / path).is_file()}


def attributes_of(tree: ast.Module, module: str) -> set[str]:
    """The names that are taken from a module, as in ``module.name``."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module
    }


def offences(found: Callable[[ast.Module], set[str]], names: Iterable[str] = MODULES) -> dict[str, set[str]]:
    """What a rule finds in each file that breaks it."""
    return {name: wrong for name in names if (wrong := found(TREES[name]))}


def test_what_decides_imports_no_clock_chance_or_service() -> None:
    assert offences(lambda tree: {module.partition(".")[0] for module in imports_of(tree)} & IMPURE, PURE) == {}


def test_what_decides_rests_on_what_decides() -> None:
    assert offences(lambda tree: project_files(tree) - set(PURE), PURE) == {}


def test_ids_are_derived_and_never_drawn() -> None:
    assert offences(lambda tree: attributes_of(tree, "uuid") - {"uuid5", "UUID"}, PURE) == {}


def test_every_module_of_the_catalogue_is_pure_or_known_to_read_files() -> None:
    catalogue = {name for name in MODULES if Path(name).parent.name == "schemas" and Path(name).stem != "__init__"}
    assert catalogue - READS_FILES <= set(PURE)


def unseeded(tree: ast.Module) -> set[str]:
    """Uses of `random` other than a generator made from a seed."""
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "random"
        for alias in node.names
    }
    bare = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Random", "random.Random"} and not node.args
    }
    return (imported | attributes_of(tree, "random")) - {"Random"} | bare


def test_chance_is_drawn_from_a_seeded_generator() -> None:
    assert offences(unseeded) == {}


def run_text(tree: ast.Module) -> set[str]:
    """Calls and modules that run text or bytes as code."""
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    modules = {module.partition(".")[0] for module in imports_of(tree)}
    loads = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"torch.load"}
    return calls & BANNED_CALLS | modules & BANNED_MODULES | loads


def test_no_text_is_ever_run() -> None:
    assert offences(run_text) == {}


def test_a_module_is_one_noun_of_readable_size() -> None:
    assert [name for name in MODULES if Path(name).stem in VAGUE_NAMES] == []
    assert [name for name in MODULES if len((ROOT / name).read_text(encoding="utf-8").splitlines()) > 400] == []


def test_imports_are_absolute() -> None:
    def relative(tree: ast.Module) -> set[str]:
        return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level}

    assert offences(relative) == {}


def test_tests_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_packages_import_in_their_directions() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
