"""The eight classes of BFCL's multi-turn tasks and who owns which function."""

from collections.abc import Mapping

from producers.synthesis.bfcl import arithmetic, files, messages, posts, tickets, trading, travel, vehicle
from producers.synthesis.bfcl.table import Function, Toolbox

TOOLBOXES: Mapping[str, Toolbox] = {
    module.OWNER: module.TOOLBOX for module in (files, arithmetic, messages, posts, tickets, trading, travel, vehicle)
}
OWNERS: Mapping[str, str] = {name: owner for owner, box in TOOLBOXES.items() for name in box.functions}


def function_of(name: str) -> Function:
    """The function of that name. Raises KeyError for one no class has."""
    return TOOLBOXES[OWNERS[name]].functions[name]
