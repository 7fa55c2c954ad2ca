"""Every piece that a workbench text can hold: the tokenizer's closed vocabulary."""

from collections.abc import Iterator

from producers.environments.workbench import domains, entities, tools, world
from producers.environments.workbench.language import split

ANNOUNCEMENTS = ("with", "without")


def words() -> tuple[str, ...]:
    """All pieces of requests, calls, results and announcements, sorted; each is one token of `language.split`."""
    return tuple(sorted({piece for text in _texts() for piece in split(text)}))


def _texts() -> Iterator[str]:
    for template in (*(text for spec in tools.TOOLS.values() for text in spec.say), *tools.PHRASES.fill_ins):
        yield _bare(template)
    yield from (*tools.PHRASES.joiners, *tools.PHRASES.open.values(), *ANNOUNCEMENTS, ". )", "that")
    yield from (kind.value for kind in entities.Kind)
    yield from (entities.show(name) for names in entities.NAMES.values() for name in names)
    yield from (entities.show(amount) for amount in entities.AMOUNTS)
    for spec in tools.TOOLS.values():
        yield f"{spec.name} {spec.name}("
        yield from (f"{parameter.name}=" for parameter in spec.parameters)
    yield from (domains.DONE, domains.EMPTY, *domains.REFUSALS, *tools.BIND_ERRORS, world.NO_TOOL, world.NO_CALL)


def _bare(template: str) -> str:
    return " ".join(word for word in template.split() if not word.startswith("{"))
