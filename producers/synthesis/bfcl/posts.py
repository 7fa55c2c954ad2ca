"""TwitterAPI: short posts with tags and mentions, replies, shares and followed accounts."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument

OWNER = "TwitterAPI"
_RECENT = 0.75


def _config(world: Sketch) -> dict[str, Any]:
    config: dict[str, Any] = world.state[OWNER]
    return config


def _ids(world: Sketch) -> list[int]:
    return sorted(int(key) for key in _config(world).get("tweets", {}))


def _post(world: Sketch, rng: Random) -> Argument:
    """The post just written, more often than not, or one that was there before."""
    last = world.latest("post_tweet", "id")
    if last is not None and rng.random() < _RECENT:
        return last
    ids = _ids(world)
    return rng.choice(ids) if ids else last


def _on_post(world: Sketch, rng: Random) -> Arguments | None:
    post = _post(world, rng)
    return None if post is None else {"tweet_id": post}


def _retweet(world: Sketch, rng: Random) -> Arguments | None:
    post = _post(world, rng)
    if post is None or world.used("retweet", tweet_id=post) or post in _shared(world):
        return None
    return {"tweet_id": post}


def _shared(world: Sketch) -> list[int]:
    config = _config(world)
    return [int(item) for item in config.get("retweets", {}).get(config.get("username", "john"), [])]


def _write(world: Sketch, rng: Random) -> Arguments | None:
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


def _write_words(arguments: Arguments) -> tuple[str, ...]:
    text = "publish a post saying {content}"
    if "tags" in arguments:
        text += ", tagged {tags}"
    text += ", addressed to {mentions}"
    return (text, text.replace("publish a post saying", "post this for everyone to see:"))


def _reply(world: Sketch, rng: Random) -> Arguments | None:
    post = _post(world, rng)
    return None if post is None else {"tweet_id": post, "comment_content": rng.choice(LISTS["notes"])}


def _mention(world: Sketch, rng: Random) -> Arguments | None:
    post = _post(world, rng)
    if post is None:
        return None
    taken = next((s.argument("mentions") for s in reversed(world.steps) if s.function == "post_tweet"), None) or []
    free = [handle for handle in LISTS["handles"] if handle not in taken]  # type: ignore[operator]
    return {"tweet_id": post, "mentioned_usernames": [rng.choice(free)]}


def _following(world: Sketch) -> list[str]:
    following: list[str] = _config(world).setdefault("following_list", ["alice", "bob"])
    return following


def _follow(world: Sketch, rng: Random) -> Arguments | None:
    free = [name for name in LISTS["accounts"] if name not in _following(world)]
    return {"username_to_follow": rng.choice(free)} if free else None


def _follow_effect(world: Sketch, arguments: Arguments) -> None:
    _following(world).append(str(arguments["username_to_follow"]))


def _unfollow(world: Sketch, rng: Random) -> Arguments | None:
    following = _following(world)
    return {"username_to_unfollow": rng.choice(following)} if following else None


def _unfollow_effect(world: Sketch, arguments: Arguments) -> None:
    _following(world).remove(str(arguments["username_to_unfollow"]))


def _login(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    config = _config(world)
    if world.used("authenticate_twitter") or world.used("post_tweet"):
        return None
    return {"username": config.get("username", "john"), "password": config.get("password", "john123")}


def _account(world: Sketch, rng: Random) -> Arguments | None:
    names = {str(tweet.get("username")) for tweet in _config(world).get("tweets", {}).values()}
    return {"username": rng.choice(sorted(names) or ["alice"])}


def _search(world: Sketch, rng: Random) -> Arguments | None:
    tweets = _config(world).get("tweets", {}).values()
    present = [w for t in tweets for w in str(t.get("content", "")).split() if w.isalpha() and len(w) > 4]
    return {"keyword": rng.choice(present or LISTS["keywords"])}


FUNCTIONS = {
    "authenticate_twitter": Function(
        ("sign me in to my social account {username} with the passphrase {password}",), _login
    ),
    "posting_get_login_status": Function(("check whether my social account is signed in",)),
    "post_tweet": Function(_write_words, _write),
    "retweet": Function(("share {tweet_id} again from my account", "repost {tweet_id} to my followers"), _retweet),
    "comment": Function(
        ("reply to {tweet_id} with {comment_content}", "leave {comment_content} under {tweet_id}"), _reply
    ),
    "mention": Function(
        ("bring {mentioned_usernames} into {tweet_id}", "have {mentioned_usernames} named in {tweet_id} too"), _mention
    ),
    "follow_user": Function(("start following {username_to_follow}",), _follow, _follow_effect),
    "list_all_following": Function(("show me all the accounts I follow",)),
    "unfollow_user": Function(("stop following {username_to_unfollow}",), _unfollow, _unfollow_effect),
    "get_tweet": Function(("show me {tweet_id} in full", "pull up {tweet_id}"), _on_post),
    "get_user_tweets": Function(("collect everything that {username} has posted",), _account),
    "search_tweets": Function(("look through all posts for {keyword}",), _search),
    "get_tweet_comments": Function(("show me the replies under {tweet_id}",), _on_post),
    "get_user_stats": Function(("give me the account figures for {username}",), _account),
}
CHAINS = (
    ("authenticate_twitter", "post_tweet"), ("post_tweet", "comment"), ("post_tweet", "retweet"),
    ("post_tweet", "mention"), ("search_tweets", "get_tweet"), ("retweet", "comment"),
)  # fmt: skip
GOALS = ("my followers' weekly update", "the outreach campaign", "the club's news page")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Rewrites the texts of existing posts and moves the counter of post numbers."""
    tweets = config.setdefault("tweets", {})
    for tweet in tweets.values():
        tweet["content"] = rng.choice(LISTS["notes"])
        tweet["tags"] = list(rng.sample(LISTS["tags"], 2))
        tweet.setdefault("mentions", [])
    top = max((int(key) for key in tweets), default=0)
    config["tweet_counter"] = top + rng.randint(1, 9)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
