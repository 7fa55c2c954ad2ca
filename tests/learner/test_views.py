from dataclasses import replace

from learner.views import Asked, Views
from schemas.rollouts import TaskMeasured
from schemas.topics import Topic
from tests.streams.rollout_log import folded, result


def view_of(total: int) -> TaskMeasured:
    (evolved,) = folded([result(passed=(0, 1, 1, 0), total=total)])
    assert evolved.measured is not None
    return evolved.measured


def asked_of(view: TaskMeasured) -> Asked:
    return Asked(view.group, view.task, "train", "base", 4, 2)


def test_a_measurement_of_another_shape_does_not_hide_the_one_asked_for() -> None:
    views, right, wrong = Views(), view_of(2), view_of(3)
    views.folds()[Topic.MEASUREMENTS](0, 0, wrong)
    assert asked_of(right) not in views.measured
    views.folds()[Topic.MEASUREMENTS](0, 1, right)
    assert views.measured[asked_of(right)] == right


def test_the_first_measurement_of_a_group_is_kept() -> None:
    views, first = Views(), view_of(2)
    for offset, view in enumerate((first, replace(first, turns_passed=0))):
        views.folds()[Topic.MEASUREMENTS](0, offset, view)
    assert views.measured[asked_of(first)] == first
