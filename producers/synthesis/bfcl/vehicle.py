"""VehicleControlAPI: a car with doors, brake, engine, fuel, climate and navigation."""

from random import Random

from producers.synthesis.bfcl.sketch import Arguments, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.plan import Argument, Ref

OWNER = "VehicleControlAPI"
_DOORS = ("driver", "passenger", "rear_left", "rear_right")
_TANK = 50
_TABLE = read_class("vehicle")


def _lock(world: Sketch, rng: Random) -> Arguments | None:
    del world
    doors: list[Argument] = list(_DOORS) if rng.random() < 0.7 else list(rng.sample(_DOORS, 2))
    return {"unlock": len(doors) < 4 and rng.random() < 0.5, "door": doors}  # type: ignore[dict-item]


def _lock_effect(world: Sketch, arguments: Arguments) -> None:
    status = world.state[OWNER].setdefault("doorStatus", dict.fromkeys(_DOORS, "unlocked"))
    for door in arguments["door"]:  # type: ignore[union-attr]
        status[door] = "unlocked" if arguments["unlock"] else "locked"


def _start(world: Sketch, rng: Random) -> Arguments | None:
    """Needs the brake fully pressed by now; doors that are open from the start are a matter for the patcher."""
    del rng
    status = world.state[OWNER].get("doorStatus", {})
    opened = any(step.function == "lockDoors" for step in world.steps)
    if opened and "unlocked" in status.values():
        return None
    if world.used("startEngine") or world.notes.get("brake") != 1.0:
        return None
    return {"ignitionMode": "START"}


def _pressure(world: Sketch, rng: Random) -> Argument:
    del world
    return 1.0 if rng.random() < 0.85 else rng.choice((0.25, 0.5, 0.75))


def _release_effect(world: Sketch, arguments: Arguments) -> None:
    del arguments
    world.notes["brake"] = 0.0


def _fuel(world: Sketch, rng: Random) -> Argument:
    room = int(_TANK - float(world.state[OWNER].get("fuelLevel", 0.0)))
    litres = world.notes.get("liters")
    converted = world.latest("liter_to_gallon", "gallon", within_turn=True)
    if converted is not None and litres is not None and litres * 0.264172 <= room:
        return converted
    return float(rng.randint(1, room)) if room > 1 else None


def _fuel_effect(world: Sketch, arguments: Arguments) -> None:
    amount = arguments["fuelAmount"]
    added = amount if isinstance(amount, float) else world.notes["liters"] * 0.264172
    world.state[OWNER]["fuelLevel"] = world.state[OWNER].get("fuelLevel", 0.0) + added


def _liters(world: Sketch, rng: Random) -> Argument:
    room = (_TANK - float(world.state[OWNER].get("fuelLevel", 0.0))) / 0.264172
    return float(rng.randint(4, int(room))) if room > 8 else float(rng.randint(10, 90))


def _climate(world: Sketch, rng: Random) -> Arguments | None:
    del world
    unit = rng.choice(("celsius", "fahrenheit"))
    degrees = rng.randint(17, 26) if unit == "celsius" else rng.randint(62, 80)
    mode = rng.choice(("auto", "cool", "heat", "defrost"))
    return {"temperature": float(degrees), "unit": unit, "fanSpeed": rng.randrange(10, 100, 5), "mode": mode}


def _cruise(world: Sketch, rng: Random) -> Arguments | None:
    del world
    gap = float(rng.randrange(50, 200, 10))
    return {"speed": float(rng.randrange(35, 90, 5)), "activate": True, "distanceToNextVehicle": gap}


def _city(world: Sketch, rng: Random) -> Argument:
    route: list[str] | None = world.notes.get("route")
    if route is None or world.used("get_zipcode_based_on_city", city=route[1]):
        route = world.notes["route"] = rng.choice(_TABLE.lists["routes"]).split(" - ")
        world.notes["leg"] = None
        if world.used("get_zipcode_based_on_city", city=route[0]) or world.used(
            "get_zipcode_based_on_city", city=route[1]
        ):
            return None
        return route[0]
    return route[1]


def _zipcode_effect(world: Sketch, arguments: Arguments) -> None:
    here = len(world.steps)
    if arguments["city"] == world.notes["route"][0]:
        world.notes["first_leg"] = here
    else:
        world.notes["leg"] = (world.notes.get("first_leg"), here)


def _distance(world: Sketch, rng: Random) -> Arguments | None:
    del rng
    leg = world.notes.get("leg")
    if not leg or leg[0] is None or world.notes.get("measured") == leg:
        return None
    first, second = leg
    return {"cityA": Ref(first, ("zipcode",)), "cityB": Ref(second, ("zipcode",))}


def _distance_effect(world: Sketch, arguments: Arguments) -> None:
    del arguments
    world.notes["measured"] = world.notes["leg"]


def _mileage(world: Sketch, rng: Random) -> Argument:
    known = world.latest("estimate_distance", "distance")
    if known is not None and not world.used("estimate_drive_feasibility_by_mileage", distance=known):
        return known
    return float(rng.randrange(60, 900, 10))


def _address(world: Sketch, rng: Random) -> Argument:
    shop = world.latest("find_nearest_tire_shop", "shopLocation")
    if shop is not None and not world.used("set_navigation", destination=shop):
        return shop
    return rng.choice(LISTS["addresses"])


TOOLBOX = toolbox(
    _TABLE,
    sources={
        "pressure": _pressure, "fuel": _fuel, "liters": _liters, "distance": _mileage, "address": _address,
        "city": _city,
    },
    samplers={
        "lockDoors": _lock, "startEngine": _start, "adjustClimateControl": _climate, "estimate_distance": _distance,
        "setCruiseControl": _cruise,
    },
    effects={
        "lockDoors": _lock_effect, "releaseBrakePedal": _release_effect, "fillFuelTank": _fuel_effect,
        "get_zipcode_based_on_city": _zipcode_effect, "estimate_distance": _distance_effect,
    },
)  # fmt: skip
