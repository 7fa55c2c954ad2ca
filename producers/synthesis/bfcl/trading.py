"""TradingBot: stocks with prices, a watch list, orders and an account balance."""

from random import Random
from typing import Any

from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument

OWNER = "TradingBot"
_NAMES = {
    "AAPL": "Apple", "GOOG": "Google", "TSLA": "Tesla", "MSFT": "Microsoft", "NVDA": "Nvidia", "ZETA": "Zeta Corp",
    "ALPH": "Alpha Tech", "OMEG": "Omega Industries", "QUAS": "Quasar Ltd.", "NEPT": "Neptune Systems",
    "SYNX": "Synex Solutions",
}  # fmt: skip


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


def _on_symbol(world: Sketch, rng: Random) -> Arguments | None:
    return {"symbol": _symbol(world, rng)}


def _noted(world: Sketch, arguments: Arguments) -> None:
    world.notes["symbol"] = arguments["symbol"] if isinstance(arguments["symbol"], str) else None


def _company(world: Sketch, rng: Random) -> Arguments | None:
    known = [name for symbol, name in sorted(_NAMES.items()) if symbol in _stocks(world)]
    return {"name": rng.choice(known)} if known else None


def _watch(world: Sketch, rng: Random) -> Arguments | None:
    free = [symbol for symbol in sorted(_stocks(world)) if symbol not in _config(world).get("watch_list", [])]
    symbol = _symbol(world, rng)
    return {"stock": symbol} if not isinstance(symbol, str) else ({"stock": rng.choice(free)} if free else None)


def _watch_effect(world: Sketch, arguments: Arguments) -> None:
    if isinstance(arguments["stock"], str):
        _config(world).setdefault("watch_list", []).append(arguments["stock"])


def _unwatch(world: Sketch, rng: Random) -> Arguments | None:
    watched = _config(world).get("watch_list", [])
    return {"symbol": rng.choice(watched)} if watched else None


def _unwatch_effect(world: Sketch, arguments: Arguments) -> None:
    _config(world)["watch_list"].remove(arguments["symbol"])


def _order(world: Sketch, rng: Random) -> Arguments | None:
    quoted = world.latest("get_stock_info", "price", within_turn=True)
    if quoted is not None and not world.long_context:  # there the figures are too long to read a price from
        symbol = world.steps[quoted.step].argument("symbol")
        price: Argument = quoted
    else:
        symbol = rng.choice(sorted(_stocks(world)))
        price = float(_stocks(world)[symbol]["price"])
    return {"order_type": rng.choice(("Buy", "Sell")), "symbol": symbol, "price": price, "amount": rng.randint(1, 40)}


def _order_words(arguments: Arguments) -> tuple[str, ...]:
    verb = str(arguments["order_type"]).lower()
    return (
        f"{verb} {{amount}} shares of {{symbol}} at {{price}}",
        f"put in an order to {verb} {{amount}} of {{symbol}} at {{price}}",
    )


def _known_order(world: Sketch, rng: Random) -> Argument:
    last = world.latest("place_order", "order_id")
    if last is not None and rng.random() < 0.85:
        return last
    orders = _config(world).get("orders", {})
    ids = [int(key) for key, order in orders.items() if str(key).isdigit() and order.get("status") != "Completed"]
    return rng.choice(sorted(ids)) if ids else last


def _on_order(world: Sketch, rng: Random) -> Arguments | None:
    order = _known_order(world, rng)
    return None if order is None else {"order_id": order}


def _cancel(world: Sketch, rng: Random) -> Arguments | None:
    order = _known_order(world, rng)
    return None if order is None or world.used("cancel_order", order_id=order) else {"order_id": order}


def _sector(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"sector": rng.choice(("Technology", "Automobile"))}


def _listed(world: Sketch, rng: Random) -> Argument:
    found = world.latest("get_available_stocks", "stock_list", within_turn=True)
    if found is not None and not world.long_context:
        return found
    return list(rng.sample(sorted(_stocks(world)), 3))


def _filter(world: Sketch, rng: Random) -> Arguments | None:
    return {"stocks": _listed(world, rng), "min_price": 100.0, "max_price": float(rng.randrange(300, 900, 50))}


def _notify(world: Sketch, rng: Random) -> Arguments | None:
    return {"stocks": _listed(world, rng), "threshold": rng.choice((0.1, 0.15, 0.2, 0.5))}


def _money(low: int, high: int) -> Any:
    def sample(world: Sketch, rng: Random) -> Arguments | None:
        del world
        return {"amount": float(rng.randrange(low, high, 50))}

    return sample


def _login(world: Sketch, rng: Random) -> Arguments | None:
    if world.used("trading_login"):
        return None
    return {"username": f"trader{rng.randint(10, 99)}", "password": f"pass{rng.randint(100, 999)}word"}


def _logout(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    return None if world.used("trading_logout") or len(world.steps) < 3 else {}


FUNCTIONS = {
    "get_current_time": Function(("tell me what time it is at the exchange", "check the clock at the exchange")),
    "get_symbol_by_name": Function(
        ("look up the ticker of {name}",), _company, vague={"name": ("some company", "The company is {}.")}
    ),
    "get_stock_info": Function(
        ("give me the latest figures for {symbol}", "check how {symbol} is doing"), _on_symbol, _noted
    ),
    "get_order_details": Function(("show me the details of {order_id}", "check on {order_id}"), _on_order),
    "cancel_order": Function(("call off {order_id}", "withdraw {order_id}"), _cancel),
    "place_order": Function(_order_words, _order, _noted, frozenset({"order_type"})),
    "withdraw_funds": Function(("pay {amount} dollars out of my trading account",), _money(50, 900)),
    "get_account_info": Function(
        ("show me where my trading account stands", "give me an overview of my trading account")
    ),
    "trading_login": Function(("sign me in for trading as {username} with the passphrase {password}",), _login),
    "trading_get_login_status": Function(("check whether I am signed in for trading",)),
    "trading_logout": Function(("sign me out of the trading system",), _logout),
    "fund_account": Function(("pay {amount} dollars into my trading account",), _money(500, 9000)),
    "remove_stock_from_watchlist": Function(
        ("take {symbol} off the list I keep an eye on",), _unwatch, _unwatch_effect
    ),
    "get_watchlist": Function(("show me the stocks I keep an eye on", "list the stocks I am watching")),
    "get_order_history": Function(("give me the numbers of all my orders so far",)),
    "get_transaction_history": Function(("show me what went in and out of my trading account",)),
    "get_available_stocks": Function(
        ("list the stocks of the {sector} sector", "show which stocks belong to the {sector} sector"), _sector
    ),
    "filter_stocks_by_price": Function(("narrow {stocks} down to prices from {min_price} to {max_price}",), _filter),
    "add_to_watchlist": Function(
        ("keep an eye on {stock} for me from now on", "put {stock} on the list I keep an eye on"), _watch, _watch_effect
    ),
    "notify_price_change": Function(("let me know which of {stocks} moved by {threshold} percent or more",), _notify),
}
CHAINS = (
    ("get_stock_info", "place_order"), ("place_order", "get_order_details"), ("get_symbol_by_name", "get_stock_info"),
    ("add_to_watchlist", "get_watchlist"), ("get_available_stocks", "notify_price_change"),
    ("get_symbol_by_name", "add_to_watchlist"), ("get_order_details", "cancel_order"),
    ("get_stock_info", "place_order", "get_order_details"), ("remove_stock_from_watchlist", "get_watchlist"),
)  # fmt: skip
GOALS = ("my portfolio review", "the morning session", "the savings plan")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Other prices, balance and order numbers."""
    for stock in config.get("stocks", {}).values():
        stock["price"] = round(float(stock["price"]) * rng.choice((0.9, 0.95, 1.05, 1.1)), 2)
    account = config.setdefault("account_info", {"account_id": 12345, "binding_card": 1974202140965533})
    account["balance"] = float(rng.randrange(8000, 60000, 250))
    config["order_counter"] = int(config.get("order_counter", 12446)) + rng.randint(1, 500)
    config["random_seed"] = rng.randrange(1000, 999999)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
