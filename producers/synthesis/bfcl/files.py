"""GorillaFileSystem: a tree of folders and files with a working directory."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Arguments, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.plan import Argument, Ref

OWNER = "GorillaFileSystem"
_SMALL = 150


def _here(world: Sketch) -> dict[str, Any]:
    contents: dict[str, Any] = next(iter(world.state[OWNER]["root"].values()))["contents"]
    for name in world.folder:
        contents = contents[name]["contents"]
    return contents


def _names(world: Sketch, kind: str) -> list[str]:
    return [name for name, item in _here(world).items() if item["type"] == kind]


def _file(world: Sketch, rng: Random) -> str | None:
    """A file at hand: the one spoken of last, more often than not."""
    names = _names(world, "file")
    last = world.notes.get("file")
    if last in names and rng.random() < 0.6:
        return str(last)
    return rng.choice(names) if names else None


def _fresh(world: Sketch, rng: Random) -> str:
    taken = set(_here(world))
    free = [s + e for s in LISTS["stems"] for e in LISTS["suffixes"] if s + e not in taken]
    return rng.choice(free)


def _cd(world: Sketch, rng: Random) -> Arguments | None:
    folders = _names(world, "directory")
    if world.steps and world.steps[-1].function == "cd":
        return {"folder": rng.choice(folders)} if folders else None
    if world.folder and (not folders or rng.random() < 0.25):
        return {"folder": ".."}
    return {"folder": rng.choice(folders)} if folders else None


def _cd_effect(world: Sketch, arguments: Arguments) -> None:
    folder = str(arguments["folder"])
    world.folder = world.folder[:-1] if folder == ".." else [*world.folder, folder]


def _new_folder(world: Sketch, rng: Random) -> Argument:
    free = [name for name in LISTS["folders"] if name not in _here(world)]
    return rng.choice(free) if free else None


def _mkdir_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world)[str(arguments["dir_name"])] = {"type": "directory", "contents": {}}


def _empty_folder(world: Sketch, rng: Random) -> Argument:
    here = _here(world)
    empty = [n for n in _names(world, "directory") if not here[n]["contents"]]
    if world.long_context:  # leaf folders are filled with pictures there
        empty = [n for n in empty if world.used("mkdir", dir_name=n)]
    return rng.choice(empty) if empty else None


def _touch_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world)[str(arguments["file_name"])] = {"type": "file", "content": ""}


def _echo(world: Sketch, rng: Random) -> Arguments | None:
    files = _names(world, "file")
    if not files:
        return None
    content: Argument = rng.choice(LISTS["notes"])
    counted = world.latest("wc", "count", within_turn=True)
    if counted is not None:
        content = Ref(counted.step, counted.path, text=True)
    name = world.notes.get("file")
    fresh = name in files and not _here(world)[str(name)]["content"]
    return {"content": content, "file_name": str(name) if fresh else rng.choice(files)}


def _echo_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world)[str(arguments["file_name"])]["content"] = str(arguments["content"])


def _grep(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    if name is None:
        return None
    present = [w for w in str(_here(world)[name]["content"]).split() if w.isalpha() and len(w) > 3]
    return {"file_name": name, "pattern": rng.choice(present or LISTS["keywords"])}


def _stem(world: Sketch, rng: Random) -> Argument:
    stems = [name.partition(".")[0] for name in _here(world)]
    return rng.choice([s for s in stems if s] or LISTS["stems"])


def _wc(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    if name is None:
        return None
    modes = [m for m in "lwc" if not (world.used("wc", file_name=name, mode=m))]
    return {"file_name": name, "mode": rng.choice(modes)} if modes else None


def _diff(world: Sketch, rng: Random) -> Arguments | None:
    files = _names(world, "file")
    if len(files) < 2:
        return None
    first, second = rng.sample(files, 2)
    return {"file_name1": first, "file_name2": second}


def _relocate(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    if name is None:
        return None
    folders = [f for f in _names(world, "directory") if name not in _here(world)[f]["contents"]]
    last = world.notes.get("folder")
    if last in folders:
        return {"source": name, "destination": str(last)}
    if folders and rng.random() < 0.6:
        return {"source": name, "destination": rng.choice(folders)}
    return {"source": name, "destination": _fresh(world, rng)}


def _placed(world: Sketch, arguments: Arguments, keep: bool) -> None:
    here, source, target = _here(world), str(arguments["source"]), str(arguments["destination"])
    item = dict(here[source]) if keep else here.pop(source)
    if target in here:
        here[target]["contents"][source] = item
        world.notes["folder"] = target
    else:
        here[target] = item
        world.notes["file"] = target


def _mv_effect(world: Sketch, arguments: Arguments) -> None:
    _placed(world, arguments, keep=False)


def _cp_effect(world: Sketch, arguments: Arguments) -> None:
    _placed(world, arguments, keep=True)


def _spare_file(world: Sketch, rng: Random) -> Argument:
    files = _names(world, "file")
    return rng.choice(files) if len(files) > 1 else None


def _rm_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world).pop(str(arguments["file_name"]))


def _rmdir_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world).pop(str(arguments["dir_name"]))


def _ls(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"a": True} if rng.random() < 0.5 else {}


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Renames folders and files, rewrites part of the contents, and sees to it that there is something to work on."""
    root = config.setdefault("root", {"workspace": {"type": "directory", "contents": {}}})
    top = next(iter(root.values()))
    top["contents"] = _renamed(top["contents"], rng, list(rng.sample(LISTS["folders"], len(LISTS["folders"]))))
    contents = top["contents"]
    while sum(item["type"] == "file" for item in contents.values()) < 2:
        contents.setdefault(_new_name(rng), _new_file(rng))
    if not any(item["type"] == "directory" for item in contents.values()):
        inner = {_new_name(rng): _new_file(rng) for _ in range(2)}
        contents[rng.choice(LISTS["folders"])] = {"type": "directory", "contents": inner}


def _new_name(rng: Random) -> str:
    return rng.choice(LISTS["stems"]) + rng.choice(LISTS["suffixes"])


def _new_file(rng: Random) -> dict[str, Any]:
    return {"type": "file", "content": "\n".join(rng.sample(LISTS["lines"], rng.randint(2, 4)))}


def _renamed(contents: dict[str, Any], rng: Random, folders: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in contents.items():
        if item["type"] == "directory":
            fresh = folders.pop() if folders else name
            result[fresh] = {**item, "contents": _renamed(item["contents"], rng, folders)}
        elif rng.random() < 0.7 or len(str(item["content"])) > _SMALL:
            result[_new_name(rng)] = _new_file(rng)
        else:
            result[name] = item
    return result


TOOLBOX = toolbox(
    read_class("files"),
    _vary,
    {
        "file": _file, "new_file": _fresh, "spare_file": _spare_file, "new_folder": _new_folder,
        "empty_folder": _empty_folder, "stem": _stem,
    },
    {"ls": _ls, "cd": _cd, "echo": _echo, "wc": _wc, "grep": _grep, "diff": _diff, "mv": _relocate, "cp": _relocate},
    {
        "cd": _cd_effect, "mkdir": _mkdir_effect, "rmdir": _rmdir_effect, "touch": _touch_effect, "echo": _echo_effect,
        "mv": _mv_effect, "cp": _cp_effect, "rm": _rm_effect,
    },
)  # fmt: skip
