import torch

from producers.rollouts.sampling import draw, uniforms


def test_draws_follow_from_seed_turn_and_message() -> None:
    assert torch.equal(uniforms(7, 1, 2, 5), uniforms(7, 1, 2, 9)[:5])
    distinct = {tuple(uniforms(*key, 3).tolist()) for key in ((7, 1, 2), (8, 1, 2), (7, 2, 1), (71, 2, 0))}
    assert len(distinct) == 4
    numbers = uniforms(1, 0, 0, 4000)
    assert numbers.min() >= 0 and numbers.max() < 1
    assert abs(numbers.mean().item() - 0.5) < 0.03


def test_frequencies_are_the_probabilities_at_the_temperature() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0]]).expand(20_000, 4)
    temperature = torch.full((20_000,), 0.7)
    drawn = draw(logits, uniforms(3, 0, 0, 20_000), temperature)
    expected = torch.softmax(logits[0] / 0.7, -1)
    seen = torch.bincount(drawn.ids, minlength=4) / 20_000
    assert torch.allclose(seen, expected, atol=0.015)
    assert torch.allclose(drawn.logprobs.exp(), expected[drawn.ids], atol=1e-6)


def test_an_impossible_token_is_never_drawn() -> None:
    logits = torch.tensor([[float("-inf"), 0.0, float("-inf")]])
    for uniform in (0.0, 0.5, 1.0 - 2.0**-53):
        assert draw(logits, torch.tensor([uniform], dtype=torch.float64), torch.ones(1)).ids.item() == 1


def test_temperature_zero_takes_the_likeliest_and_scores_it_at_one() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    drawn = draw(logits, torch.tensor([0.999], dtype=torch.float64), torch.zeros(1))
    assert drawn.ids.item() == 1
    assert torch.allclose(drawn.logprobs, torch.log_softmax(logits, -1)[:, 1])
