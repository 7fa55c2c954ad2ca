from producers.rollouts.policy_log import PolicyIndex
from schemas.epochs import EpochOpened, LearnerStarted, PolicyPublished
from schemas.rules import RolloutRules, Rules


def folded(*events: object) -> PolicyIndex:
    index = PolicyIndex()
    for offset, event in enumerate(events):
        index.apply(offset, event)
    return index


def opened(epoch: int, tokens: int, generation: int = 1) -> EpochOpened:
    rules = Rules(rollout=RolloutRules(max_tokens=tokens)).canonical()
    return EpochOpened(generation, epoch, rules, 2, "", {}, "", "", "")


def test_within_a_generation_the_first_publication_of_a_version_counts() -> None:
    index = folded(PolicyPublished(1, 3, "first", "a"), PolicyPublished(1, 3, "second", "b"))
    published = index.published(3)
    assert published is not None
    assert published.location == "first"
    assert index.published(4) is None


def test_a_newer_generation_publishes_a_version_anew_and_an_older_one_is_ignored() -> None:
    index = folded(
        PolicyPublished(1, 3, "old", "a"),
        LearnerStarted(2, "n"),
        PolicyPublished(1, 4, "zombie", "z"),
        PolicyPublished(2, 3, "new", "b"),
    )
    published = index.published(3)
    assert published is not None
    assert published.location == "new"
    assert index.published(4) is None


def test_an_epochs_rules_are_its_own_or_those_before_it_or_the_first() -> None:
    index = folded(opened(1, 10), opened(3, 30))
    found = {epoch: index.rules(epoch) for epoch in range(5)}
    assert {epoch: rules.max_tokens for epoch, rules in found.items() if rules} == {0: 10, 1: 10, 2: 10, 3: 30, 4: 30}
    assert folded().rules(1) is None


def test_rules_that_do_not_parse_are_no_rules() -> None:
    assert folded(EpochOpened(1, 1, "{", 2, "", {}, "", "", "")).rules(1) is None
