"""TradingBot: stocks with prices, a watch list, orders and an account balance."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.sketch import Arguments, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.plan import Argument

OWNER = "TradingBot"
_TABLE = read_class("trading")


def _config(world: Sketch) -> dict[str, Any]:
    config: dict[str, Any] = world.state[OWNER]
    return config


def _stocks(world: Sketch) -> dict[str, Any]:
    stocks: dict[str, Any] = _config(world).get("stocks", {})
    return stocks or {"AAPL": {"price": 227.16}, "NVDA": {"price": 220.34}, "ZETA": {"price": 22.09}}


def _symbol(world: Sketch, rng: Random) -> Argument:
    """A company's symbol just looked up, else the stock spoken of last, else any."""
    found = world.latest("get_symbol_by_name", "symbol", within_turn=True)
    if found is not None:
        return found
    last = world.notes.get("symbol")
    if last is not None and rng.random() < 0.5:
        return str(last)
    return rng.choice(sorted(_stocks(world)))


def _noted(world: Sketch, arguments: Arguments) -> None:
    world.notes["symbol"] = arguments["symbol"] if isinstance(arguments["symbol"], str) else None


def _company(world: Sketch, rng: Random) -> Argument:
    known = [name for symbol, name in sorted(_TABLE.maps["companies"].items()) if symbol in _stocks(world)]
    return rng.choice(known) if known else None


def _unwatched(world: Sketch, rng: Random) -> Argument:
    free = [symbol for symbol in sorted(_stocks(world)) if symbol not in _config(world).get("watch_list", [])]
    symbol = _symbol(world, rng)
    if not isinstance(symbol, str):
        return symbol
    return rng.choice(free) if free else None


def _watch_effect(world: Sketch, arguments: Arguments) -> None:
    if isinstance(arguments["stock"], str):
        _config(world).setdefault("watch_list", []).append(arguments["stock"])


def _watched(world: Sketch, rng: Random) -> Argument:
    watched = _config(world).get("watch_list", [])
    return rng.choice(watched) if watched else None


def _unwatch_effect(world: Sketch, arguments: Arguments) -> None:
    _config(world)["watch_list"].remove(arguments["symbol"])


def _placed(world: Sketch, rng: Random) -> Arguments | None:
    quoted = world.latest("get_stock_info", "price", within_turn=True)
    if quoted is not None and not world.long_context:  # there the figures are too long to read a price from
        symbol = world.steps[quoted.step].argument("symbol")
        price: Argument = quoted
    else:
        symbol = rng.choice(sorted(_stocks(world)))
        price = float(_stocks(world)[symbol]["price"])
    return {"order_type": rng.choice(("Buy", "Sell")), "symbol": symbol, "price": price, "amount": rng.randint(1, 40)}


def _order(world: Sketch, rng: Random) -> Argument:
    last = world.latest("place_order", "order_id")
    if last is not None and rng.random() < 0.85:
        return last
    orders = _config(world).get("orders", {})
    ids = [int(key) for key, order in orders.items() if str(key).isdigit() and order.get("status") != "Completed"]
    return rng.choice(sorted(ids)) if ids else last


def _open_order(world: Sketch, rng: Random) -> Argument:
    order = _order(world, rng)
    return None if world.used("cancel_order", order_id=order) else order


def _listed(world: Sketch, rng: Random) -> Argument:
    found = world.latest("get_available_stocks", "stock_list", within_turn=True)
    if found is not None and not world.long_context:
        return found
    return list(rng.sample(sorted(_stocks(world)), 3))


def _logout(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    return None if world.used("trading_logout") or len(world.steps) < 3 else {}


def _vary(config: dict[str, Any], rng: Random) -> None:
    """Other prices, balance and order numbers."""
    for stock in config.get("stocks", {}).values():
        stock["price"] = round(float(stock["price"]) * rng.choice((0.9, 0.95, 1.05, 1.1)), 2)
    account = config.setdefault("account_info", {"account_id": 12345, "binding_card": 1974202140965533})
    account["balance"] = float(rng.randrange(8000, 60000, 250))
    config["order_counter"] = int(config.get("order_counter", 12446)) + rng.randint(1, 500)


TOOLBOX = toolbox(
    _TABLE,
    _vary,
    {
        "symbol": _symbol, "company": _company, "unwatched": _unwatched, "watched": _watched, "order": _order,
        "open_order": _open_order, "listed": _listed,
    },
    {"place_order": _placed, "trading_logout": _logout},
    {
        "get_stock_info": _noted, "place_order": _noted, "add_to_watchlist": _watch_effect,
        "remove_stock_from_watchlist": _unwatch_effect,
    },
)  # fmt: skip
