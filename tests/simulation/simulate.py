"""One schedule from seed to verdict."""

from functools import cache

from tests.simulation.mutants import Mutant
from tests.simulation.schedule import Schedule, schedule_of, undisturbed
from tests.simulation.verdict import Digests, check, same
from tests.simulation.wire import patched
from tests.simulation.world import World


def simulate(seed: int, *, trace: bool = False, mutant: Mutant | None = None) -> Digests:
    """Runs a seed's schedule and judges it. Raises ViolationError, or what the real code raises."""
    schedule = schedule_of(seed)
    digests = run(schedule, trace=trace, mutant=mutant)
    if schedule.exact:
        same("digests, beside the undisturbed run's", digests, undisturbed_digests(schedule.world))
    return digests


def run(schedule: Schedule, *, trace: bool = False, mutant: Mutant | None = None) -> Digests:
    """Runs a schedule and holds its log against a plain fold of it."""
    return played(schedule, trace=trace, mutant=mutant)[1]


def played(schedule: Schedule, *, trace: bool = False, mutant: Mutant | None = None) -> tuple[World, Digests]:
    """As `run`; also what the world has come to."""
    world = World(schedule, trace, mutant)
    setting = schedule.setting
    patches = world.wire.patches(setting.small_chunks, len(setting.rules.canonical()))
    with patched([*patches, *(mutant.patches if mutant else ())]):
        world.run()
        return world, check(world)


@cache
def undisturbed_digests(world: int) -> Digests:
    """What a world comes to where nothing goes wrong."""
    return run(undisturbed(world))
