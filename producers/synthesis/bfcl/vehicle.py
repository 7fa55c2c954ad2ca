"""VehicleControlAPI: a car with doors, brake, engine, fuel, climate and navigation."""

from random import Random
from typing import Any

from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument, Ref

OWNER = "VehicleControlAPI"
_DOORS = ("driver", "passenger", "rear_left", "rear_right")
_TANK = 50
_ROUTES = (
    ("Rivermist", "Stonebrook"), ("Maplecrest", "Silverpine"), ("Shadowridge", "Sunset Valley"),
    ("Oakendale", "Willowbend"), ("Crescent Hollow", "Autumnville"), ("San Francisco", "Rivermist"),
    ("Silverpine", "Oakendale"), ("San Francisco", "Silverpine"), ("Stonebrook", "San Francisco"),
)  # fmt: skip


def _lock(world: Sketch, rng: Random) -> Arguments | None:
    del world
    doors: list[Argument] = list(_DOORS) if rng.random() < 0.7 else list(rng.sample(_DOORS, 2))
    return {"unlock": len(doors) < 4 and rng.random() < 0.5, "door": doors}  # type: ignore[dict-item]


def _lock_effect(world: Sketch, arguments: Arguments) -> None:
    status = world.state[OWNER].setdefault("doorStatus", dict.fromkeys(_DOORS, "unlocked"))
    for door in arguments["door"]:  # type: ignore[union-attr]
        status[door] = "unlocked" if arguments["unlock"] else "locked"


def _lock_words(arguments: Arguments) -> tuple[str, ...]:
    verb = "unlock" if arguments["unlock"] else "lock"
    doors = [str(door).replace("_", " ") for door in arguments["door"]]  # type: ignore[union-attr]
    if len(doors) == 4:
        return (f"{verb} all four doors", f"{verb} every door of the car")
    return (f"{verb} just the {' and the '.join(doors)} door",)


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


def _press(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"pedalPosition": 1.0 if rng.random() < 0.85 else rng.choice((0.25, 0.5, 0.75))}


def _press_effect(world: Sketch, arguments: Arguments) -> None:
    world.notes["brake"] = arguments["pedalPosition"]


def _release_effect(world: Sketch, arguments: Arguments) -> None:
    del arguments
    world.notes["brake"] = 0.0


def _press_words(arguments: Arguments) -> tuple[str, ...]:
    share = {0.25: "a quarter of the way", 0.5: "half way", 0.75: "three quarters of the way"}
    return (f"push the brake {share.get(float(arguments['pedalPosition']), 'all the way')} down",)  # type: ignore[arg-type]


def _fuel(world: Sketch, rng: Random) -> Arguments | None:
    room = int(_TANK - float(world.state[OWNER].get("fuelLevel", 0.0)))
    litres = world.notes.get("liters")
    converted = world.latest("liter_to_gallon", "gallon", within_turn=True)
    if converted is not None and litres is not None and litres * 0.264172 <= room:
        return {"fuelAmount": converted}
    return {"fuelAmount": float(rng.randint(1, room))} if room > 1 else None


def _fuel_effect(world: Sketch, arguments: Arguments) -> None:
    amount = arguments["fuelAmount"]
    added = amount if isinstance(amount, float) else world.notes["liters"] * 0.264172
    world.state[OWNER]["fuelLevel"] = world.state[OWNER].get("fuelLevel", 0.0) + added


def _liters(world: Sketch, rng: Random) -> Arguments | None:
    room = (_TANK - float(world.state[OWNER].get("fuelLevel", 0.0))) / 0.264172
    return {"liter": float(rng.randint(4, int(room)))} if room > 8 else {"liter": float(rng.randint(10, 90))}


def _liters_effect(world: Sketch, arguments: Arguments) -> None:
    world.notes["liters"] = arguments["liter"]


def _gallons(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"gallon": float(rng.randint(2, 45))}


def _climate(world: Sketch, rng: Random) -> Arguments | None:
    del world
    unit = rng.choice(("celsius", "fahrenheit"))
    degrees = rng.randint(17, 26) if unit == "celsius" else rng.randint(62, 80)
    mode = rng.choice(("auto", "cool", "heat", "defrost"))
    return {"temperature": float(degrees), "unit": unit, "fanSpeed": rng.randrange(10, 100, 5), "mode": mode}


def _climate_words(arguments: Arguments) -> tuple[str, ...]:
    unit = str(arguments["unit"]).capitalize()
    return (
        f"set the climate to {{temperature}} {unit} on {arguments['mode']} with the fan at {{fanSpeed}}",
        f"bring the cabin to {{temperature}} {unit}, {arguments['mode']} setting, fan at {{fanSpeed}}",
    )


def _headlights(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"mode": rng.choice(("on", "off", "auto"))}


def _headlights_words(arguments: Arguments) -> tuple[str, ...]:
    mode = arguments["mode"]
    return ("put the headlights on automatic",) if mode == "auto" else (f"switch the headlights {mode}",)


_VIEWS = {
    "fuel": "fuel gauge", "battery": "battery reading", "doors": "state of the doors", "climate": "climate settings",
    "headlights": "state of the headlights", "parkingBrake": "state of the parking brake",
    "brakePedal": "state of the brake pedal", "engine": "state of the engine",
}  # fmt: skip


def _status(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"option": rng.choice(list(_VIEWS))}


def _status_words(arguments: Arguments) -> tuple[str, ...]:
    view = _VIEWS[str(arguments["option"])]
    return (f"give me the {view}", f"check the {view} for me")


def _brake(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"mode": rng.choice(("engage", "engage", "release"))}


def _brake_words(arguments: Arguments) -> tuple[str, ...]:
    return (f"{arguments['mode']} the parking brake",)


def _cruise(world: Sketch, rng: Random) -> Arguments | None:
    del world
    gap = float(rng.randrange(50, 200, 10))
    return {"speed": float(rng.randrange(35, 90, 5)), "activate": True, "distanceToNextVehicle": gap}


def _log(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"messages": list(rng.sample(LISTS["notes"], rng.randint(1, 2)))}


def _zipcode(world: Sketch, rng: Random) -> Arguments | None:
    route = world.notes.get("route")
    if route is None or world.used("get_zipcode_based_on_city", city=route[1]):
        route = world.notes["route"] = rng.choice(_ROUTES)
        world.notes["leg"] = None
        if world.used("get_zipcode_based_on_city", city=route[0]) or world.used(
            "get_zipcode_based_on_city", city=route[1]
        ):
            return None
        return {"city": route[0]}
    return {"city": route[1]}


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


def _feasible(world: Sketch, rng: Random) -> Arguments | None:
    known = world.latest("estimate_distance", "distance")
    if known is not None and not world.used("estimate_drive_feasibility_by_mileage", distance=known):
        return {"distance": known}
    return {"distance": float(rng.randrange(60, 900, 10))}


def _navigate(world: Sketch, rng: Random) -> Arguments | None:
    shop = world.latest("find_nearest_tire_shop", "shopLocation")
    if shop is not None and not world.used("set_navigation", destination=shop):
        return {"destination": shop}
    return {"destination": rng.choice(LISTS["addresses"])}


_IMPLIED = frozenset({"unlock", "door", "ignitionMode", "pedalPosition", "unit", "mode", "option", "activate"})

FUNCTIONS = {
    "startEngine": Function(("start the engine", "get the engine running"), _start, implied=_IMPLIED),
    "fillFuelTank": Function(
        ("put {fuelAmount} of fuel in the tank", "fill in {fuelAmount} of fuel"), _fuel, _fuel_effect
    ),
    "lockDoors": Function(_lock_words, _lock, _lock_effect, _IMPLIED),
    "adjustClimateControl": Function(_climate_words, _climate, implied=_IMPLIED),
    "get_outside_temperature_from_google": Function(("look up how warm it is outside, going by Google",)),
    "setHeadlights": Function(_headlights_words, _headlights, implied=_IMPLIED),
    "displayCarStatus": Function(_status_words, _status, implied=_IMPLIED),
    "activateParkingBrake": Function(_brake_words, _brake, implied=_IMPLIED),
    "pressBrakePedal": Function(_press_words, _press, _press_effect, _IMPLIED),
    "releaseBrakePedal": Function(
        ("let go of the brake pedal", "take the pressure off the brake pedal"), effect=_release_effect
    ),
    "setCruiseControl": Function(
        ("set the cruise control to {speed}, keeping {distanceToNextVehicle} to the car ahead",),
        _cruise,
        implied=_IMPLIED,
    ),
    "get_current_speed": Function(("tell me how fast we are going", "check the speed we are doing")),
    "display_log": Function(("show {messages} on the dashboard log",), _log),
    "estimate_drive_feasibility_by_mileage": Function(
        ("judge whether the fuel we have is enough for {distance}", "tell me if the car can manage {distance}"),
        _feasible,
    ),
    "liter_to_gallon": Function(
        ("convert {liter} to gallons", "work out what {liter} come to in gallons"), _liters, _liters_effect
    ),
    "gallon_to_liter": Function(("convert {gallon} to liters", "work out what {gallon} come to in liters"), _gallons),
    "estimate_distance": Function(
        ("estimate how far {cityA} is from {cityB}", "work out the way from {cityA} to {cityB}"),
        _distance,
        _distance_effect,
    ),
    "get_zipcode_based_on_city": Function(
        ("look up the zip code of {city}", "get me the zip code for {city}"), _zipcode, _zipcode_effect
    ),
    "set_navigation": Function(("direct the navigation to {destination}", "guide me to {destination}"), _navigate),
    "check_tire_pressure": Function(("check the pressure in the tires", "see whether the tires are properly inflated")),
    "find_nearest_tire_shop": Function(("locate the closest tire shop", "tell me where the nearest tire shop is")),
}
_ZIP = "get_zipcode_based_on_city"
CHAINS = (
    ("lockDoors", "pressBrakePedal", "startEngine"), ("pressBrakePedal", "startEngine"),
    (_ZIP, _ZIP, "estimate_distance"), (_ZIP, _ZIP, "estimate_distance", "estimate_drive_feasibility_by_mileage"),
    ("liter_to_gallon", "fillFuelTank"), ("find_nearest_tire_shop", "set_navigation"),
    ("fillFuelTank", "lockDoors", "pressBrakePedal", "startEngine"), ("displayCarStatus", "fillFuelTank"),
    ("liter_to_gallon", "fillFuelTank", "lockDoors", "pressBrakePedal", "startEngine"),
    ("check_tire_pressure", "find_nearest_tire_shop"),
    ("check_tire_pressure", "find_nearest_tire_shop", "set_navigation"),
    ("pressBrakePedal", "startEngine", "setCruiseControl"), ("activateParkingBrake", "releaseBrakePedal"),
)  # fmt: skip
GOALS = ("the weekend drive", "the delivery run", "the mountain trip", "the family visit", "the early commute")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Other fuel, voltage, climate and tire readings; doors, brake and engine as the seed has them."""
    config["fuelLevel"] = float(rng.randint(4, 24))
    config["batteryVoltage"] = rng.choice((12.1, 12.4, 12.6, 12.8, 13.0))
    config["acTemperature"] = float(rng.randint(18, 28))
    config["humidityLevel"] = float(rng.randrange(30, 65, 5))
    for tire in ("frontLeft", "frontRight", "rearLeft", "rearRight"):
        config[f"{tire}TirePressure"] = rng.choice((28.0, 29.5, 30.0, 31.0, 32.0, 33.5))
    config["random_seed"] = rng.randrange(1000, 999999)


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
