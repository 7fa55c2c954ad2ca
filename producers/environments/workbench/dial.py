"""How hard generated tasks are."""

from dataclasses import dataclass

from schemas.task import Category

CATEGORIES = (Category.BASE, Category.MISSING_FUNCTION, Category.MISSING_PARAMETER, Category.LONG_CONTEXT)


@dataclass(frozen=True, slots=True)
class Dial:
    """The depth of tasks; each task draws its own within these bounds.

    turns: fewest and most, the added turn of a missing function or parameter included. calls: fewest and most per turn.
    chain: how often a turn of two or more calls looks something up and passes the result on. carry: how often a turn's
    first call takes a result of an earlier turn, where one fits. cross: how often such a result goes to another domain.
    classes: fewest and most simulators. distractors: further names in the state of a long-context task, per kind.
    """

    turns: tuple[int, int] = (2, 4)
    calls: tuple[int, int] = (1, 3)
    chain: float = 0.5
    carry: float = 0.25
    cross: float = 0.6
    classes: tuple[int, int] = (2, 3)
    distractors: int = 5
    categories: tuple[Category, ...] = CATEGORIES


EASY = Dial(turns=(2, 3), calls=(1, 1), chain=0.0, carry=0.0, classes=(1, 2))
NORMAL = Dial()
HARD = Dial(turns=(3, 4), calls=(2, 3), chain=0.8, carry=0.5, classes=(2, 3))
