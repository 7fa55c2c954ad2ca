"""GorillaFileSystem: a tree of folders and files with a working directory."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
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


def _on_file(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    return None if name is None else {"file_name": name}


def _note(world: Sketch, arguments: Arguments) -> None:
    world.notes["file"] = arguments["file_name"]


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


def _cd_words(arguments: Arguments) -> tuple[str, ...]:
    if arguments["folder"] == "..":
        return ("go back up one level", "step back to the folder above")
    return ("go into the {folder} folder", "switch over to the {folder} folder", "open up the {folder} folder")


def _mkdir(world: Sketch, rng: Random) -> Arguments | None:
    free = [name for name in LISTS["folders"] if name not in _here(world)]
    return {"dir_name": rng.choice(free)} if free else None


def _mkdir_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world)[str(arguments["dir_name"])] = {"type": "directory", "contents": {}}
    world.notes["folder"] = arguments["dir_name"]


def _rmdir(world: Sketch, rng: Random) -> Arguments | None:
    here = _here(world)
    empty = [n for n in _names(world, "directory") if not here[n]["contents"]]
    if world.long_context:  # leaf folders are filled with pictures there
        empty = [n for n in empty if world.used("mkdir", dir_name=n)]
    return {"dir_name": rng.choice(empty)} if empty else None


def _touch(world: Sketch, rng: Random) -> Arguments | None:
    return {"file_name": _fresh(world, rng)}


def _touch_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world)[str(arguments["file_name"])] = {"type": "file", "content": ""}
    _note(world, arguments)


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
    _note(world, arguments)


def _grep(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    if name is None:
        return None
    present = [w for w in str(_here(world)[name]["content"]).split() if w.isalpha() and len(w) > 3]
    return {"file_name": name, "pattern": rng.choice(present or LISTS["keywords"])}


def _find(world: Sketch, rng: Random) -> Arguments | None:
    stems = [name.partition(".")[0] for name in _here(world)]
    return {"path": ".", "name": rng.choice([s for s in stems if s] or LISTS["stems"])}


def _tail(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    return None if name is None else {"file_name": name, "lines": rng.randint(1, 5)}


def _tail_words(arguments: Arguments) -> tuple[str, ...]:
    if arguments["lines"] == 1:
        return ("show me the very last line of {file_name}", "read me just the final line of {file_name}")
    return ("show me the last {lines} lines of {file_name}", "read me the final {lines} lines of {file_name}")


def _wc(world: Sketch, rng: Random) -> Arguments | None:
    name = _file(world, rng)
    if name is None:
        return None
    modes = [m for m in "lwc" if not (world.used("wc", file_name=name, mode=m))]
    return {"file_name": name, "mode": rng.choice(modes)} if modes else None


def _wc_words(arguments: Arguments) -> tuple[str, ...]:
    unit = {"l": "lines", "w": "words", "c": "characters"}[str(arguments["mode"])]
    return (f"count the {unit} in {{file_name}}", f"tell me how many {unit} {{file_name}} has")


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


def _place_words(verb: str, as_name: str) -> Any:
    def wording(arguments: Arguments) -> tuple[str, ...]:
        if "." in str(arguments["destination"]):
            return (as_name,)
        return (f"{verb} {{source}} into the {{destination}} folder",)

    return wording


def _rm(world: Sketch, rng: Random) -> Arguments | None:
    files = _names(world, "file")
    return {"file_name": rng.choice(files)} if len(files) > 1 else None


def _rm_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world).pop(str(arguments["file_name"]))


def _rmdir_effect(world: Sketch, arguments: Arguments) -> None:
    _here(world).pop(str(arguments["dir_name"]))


def _ls(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"a": True} if rng.random() < 0.5 else {}


def _ls_words(arguments: Arguments) -> tuple[str, ...]:
    if arguments.get("a"):
        return ("list everything in this folder, hidden items included", "show all the items here, even hidden ones")
    return ("list what is in this folder", "show me what this folder holds")


def _du(world: Sketch, rng: Random) -> Arguments | None:
    del world, rng
    return {"human_readable": True}


_IMPLIED = frozenset({"a", "mode", "human_readable", "path", "lines"})

_NEW_NAME = {"file_name": ("with a fitting name", "The name of the new file is '{}'.")}

FUNCTIONS = {
    "ls": Function(_ls_words, _ls, implied=_IMPLIED),
    "pwd": Function(("tell me which folder we are in right now", "remind me of the full path we are working in")),
    "cd": Function(_cd_words, _cd, _cd_effect),
    "mkdir": Function(
        ("set up a new folder called {dir_name}", "make a folder named {dir_name}"), _mkdir, _mkdir_effect
    ),
    "rmdir": Function(("get rid of the empty folder {dir_name}",), _rmdir, _rmdir_effect),
    "touch": Function(
        ("create an empty file {file_name}", "start a new file {file_name}"), _touch, _touch_effect, vague=_NEW_NAME
    ),
    "echo": Function(("write {content} into {file_name}", "put {content} down in {file_name}"), _echo, _echo_effect),
    "cat": Function(("show me everything written in {file_name}", "read {file_name} out in full"), _on_file, _note),
    "find": Function(
        ("look for anything with {name} in its name below this folder", "search from here for items named like {name}"),
        _find,
        implied=_IMPLIED,
    ),
    "wc": Function(_wc_words, _wc, _note, _IMPLIED),
    "sort": Function(
        ("put the lines of {file_name} in alphabetical order for me", "show {file_name} with its lines alphabetized"),
        _on_file,
        _note,
    ),
    "grep": Function(
        ("pick out the lines of {file_name} that contain {pattern}", "search {file_name} for lines with {pattern}"),
        _grep,
        _note,
    ),
    "du": Function(("work out how much space this folder takes, in readable units",), _du, implied=_IMPLIED),
    "tail": Function(_tail_words, _tail, _note, _IMPLIED),
    "diff": Function(
        ("compare {file_name1} with {file_name2} line by line", "point out where {file_name1} and {file_name2} differ"),
        _diff,
    ),
    "mv": Function(_place_words("move", "rename {source} to {destination}"), _relocate, _mv_effect),
    "cp": Function(_place_words("copy", "make a copy of {source} called {destination}"), _relocate, _cp_effect),
    "rm": Function(("delete {file_name}", "throw {file_name} away for good"), _rm, _rm_effect),
}
CHAINS = (
    ("cd", "cat"), ("cd", "ls"), ("touch", "echo"), ("touch", "echo", "cat"), ("mkdir", "mv"), ("mkdir", "cp"),
    ("cd", "grep"), ("cd", "wc"), ("cd", "tail"), ("cd", "sort"), ("cd", "diff"), ("cd", "mkdir", "mv"),
    ("cd", "touch", "echo"), ("wc", "touch", "echo"), ("mkdir", "cd", "touch", "echo"),
    ("ls", "cat"), ("wc", "wc", "wc"),
    ("cp", "diff"), ("cd", "mkdir", "cp", "cd", "mv"), ("find", "cat"), ("cp", "cd", "mv"), ("cd", "tail", "wc"),
)  # fmt: skip
GOALS = ("the quarterly handover", "the yearly archive", "the field report", "the reading group", "the audit folder")


def vary(config: dict[str, Any], rng: Random) -> None:
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


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
