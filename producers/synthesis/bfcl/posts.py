"""TwitterAPI: short posts with tags and mentions, replies, shares and followed accounts."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Arguments, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.plan import Argument

OWNER = "TwitterAPI"
_RECENT = 0.75


def _config(world: Sketch) -> dict[str, Any]:
    config: dict[str, Any] = world.state[OWNER]
    return config


def _post(world: Sketch, rng: Random) -> Argument:
    """The post just written, more often than not, or one that was there before."""
    last = world.latest("post_tweet", "id")
    if last is not None and rng.random() < _RECENT:
        return last
    ids = sorted(int(key) for key in _config(world).get("tweets", {}))
    return rng.choice(ids) if ids else last


def _unshared(world: Sketch, rng: Random) -> Argument:
    post = _post(world, rng)
    config = _config(world)
    shared = [int(item) for item in config.get("retweets", {}).get(config.get("username", "john"), [])]
    return None if post is None or world.used("retweet", tweet_id=post) or post in shared else post


def _written(world: Sketch, rng: Random) -> Arguments | None:
    arguments: Arguments = {"content": rng.choice(LISTS["notes"])}
    shop = world.latest("find_nearest_tire_shop", "shopLocation", within_turn=True)
    text = world.latest("cat", "file_content", within_turn=True)
    if shop is not None:
        arguments["content"] = shop
    elif text is not None and not world.long_context:
        arguments["content"] = text
    if rng.random() < 0.6:
        arguments["tags"] = list(rng.sample(LISTS["tags"], rng.randint(1, 2)))
    arguments["mentions"] = list(rng.sample(LISTS["handles"], 1))
    return arguments


def _unmentioned(world: Sketch, rng: Random) -> Argument:
    taken = next((s.argument("mentions") for s in reversed(world.steps) if s.function == "post_tweet"), None) or []
    free = [handle for handle in LISTS["handles"] if handle not in taken]  # type: ignore[operator]
    return [rng.choice(free)]


def _following(world: Sketch) -> list[str]:
    following: list[str] = _config(world).setdefault("following_list", ["alice", "bob"])
    return following


def _stranger(world: Sketch, rng: Random) -> Argument:
    free = [name for name in LISTS["accounts"] if name not in _following(world)]
    return rng.choice(free) if free else None


def _follow_effect(world: Sketch, arguments: Arguments) -> None:
    _following(world).append(str(arguments["username_to_follow"]))


def _followed(world: Sketch, rng: Random) -> Argument:
    following = _following(world)
    return rng.choice(following) if following else None


def _unfollow_effect(world: Sketch, arguments: Arguments) -> None:
    _following(world).remove(str(arguments["username_to_unfollow"]))


def _login(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    config = _config(world)
    if world.used("authenticate_twitter") or world.used("post_tweet"):
        return None
    return {"username": config.get("username", "john"), "password": config.get("password", "john123")}


def _account(world: Sketch, rng: Random) -> Argument:
    names = {str(tweet.get("username")) for tweet in _config(world).get("tweets", {}).values()}
    return rng.choice(sorted(names) or ["alice"])


def _keyword(world: Sketch, rng: Random) -> Argument:
    tweets = _config(world).get("tweets", {}).values()
    present = [w for t in tweets for w in str(t.get("content", "")).split() if w.isalpha() and len(w) > 4]
    return rng.choice(present or LISTS["keywords"])


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites the texts of existing posts and moves the counter of post numbers."""
    tweets = config.setdefault("tweets", {})
    for tweet in tweets.values():
        tweet["content"] = rng.choice(LISTS["notes"])
        tweet["tags"] = list(rng.sample(LISTS["tags"], 2))
        tweet.setdefault("mentions", [])
    top = max((int(key) for key in tweets), default=0)
    config["tweet_counter"] = top + rng.randint(1, 9)


TOOLBOX = toolbox(
    read_class("posts"),
    _vary,
    {
        "post": _post, "unshared": _unshared, "unmentioned": _unmentioned, "stranger": _stranger,
        "followed": _followed, "account": _account, "keyword": _keyword,
    },
    {"authenticate_twitter": _login, "post_tweet": _written},
    {"follow_user": _follow_effect, "unfollow_user": _unfollow_effect},
)  # fmt: skip
