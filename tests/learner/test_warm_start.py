from dataclasses import dataclass
from itertools import repeat

import pytest
import torch

from learner.model import fresh_model, small_config
from learner.warm_start import WarmStartSettings, warm_start


@dataclass(frozen=True)
class Sample:
    token_ids: tuple[int, ...]
    loss_mask: bytes


def test_the_loss_on_what_is_said_falls_and_runs_repeat() -> None:
    settings = WarmStartSettings(steps=25, batch=2, learning_rate=1e-3, rising=5)
    runs = []
    for _ in range(2):
        model = fresh_model(small_config(20, pad=0, end=1), seed=1)
        runs.append([p.loss for p in warm_start(model, repeat(Sample((3, 4, 5, 6, 1), b"\0\0\1\1\1")), settings)])
    assert runs[0] == runs[1]
    assert runs[0][-1] < runs[0][0] / 2


def test_samples_that_end_end_the_training() -> None:
    model = fresh_model(small_config(20, pad=0, end=1), seed=1)
    samples = [Sample((3, 4, 5, 1), b"\0\1\1\1"), Sample((3, 1), b"\0\1"), Sample((4, 4, 1), b"\0\0\1")]
    steps = list(warm_start(model, samples, WarmStartSettings(steps=9, batch=2)))
    assert [step.tokens for step in steps] == [6, 9]
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_the_rate_rises_and_then_falls_to_almost_nothing() -> None:
    settings = WarmStartSettings(steps=100, learning_rate=1.0, rising=10)
    rates = [settings.rate(step) for step in range(100)]
    assert max(rates) == rates[9] == pytest.approx(0.91)
    assert rates[0] < 0.11 and rates[-1] == pytest.approx(0.01)
