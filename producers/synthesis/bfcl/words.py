"""The words that variants of BFCL tasks are made of: names, topics, short texts, and how parameters are spoken of."""

from producers.synthesis.catalogue import Phrase

STEMS = (
    "agenda", "atlas", "audit", "bulletin", "charter", "checklist", "digest", "forecast", "glossary", "handbook",
    "intake", "inventory", "itinerary", "ledger", "manifest", "memo", "minutes", "outline", "playbook", "roster",
    "schedule", "survey", "syllabus", "timeline", "transcript",
)  # fmt: skip
SUFFIXES = (".txt", ".md", ".csv", ".log", ".doc")
FOLDERS = (
    "archives", "assets", "briefs", "budgets", "cases", "designs", "drafts", "exports", "field_work", "invoices",
    "letters", "metrics", "notes", "plans", "projects", "records", "reviews", "samples", "sources", "staging",
)  # fmt: skip
LINES = (
    "The supplier confirmed delivery for Tuesday.",
    "Budget for travel is still open.",
    "Review the safety checklist before launch.",
    "Maria leads the second workshop.",
    "Three samples failed the pressure test.",
    "The client asked for a shorter summary.",
    "Deadline moved to the end of the month.",
    "Inventory count differs by twelve units.",
    "Interview notes are attached below.",
    "The east wing needs new sensors.",
    "Approval from finance is pending.",
    "Update the contact sheet every week.",
    "The second trial gave better results.",
    "Collect receipts before the audit.",
    "Training starts at nine in room four.",
    "Backup power was tested without issues.",
)
NOTES = (
    "All figures were checked twice.", "Please review before Friday.", "The first draft is complete.",
    "Waiting for the final signature.", "Results look better than expected.", "Meeting moved to the main hall.",
    "Everything is on schedule.", "The shipment arrived this morning.", "Numbers are ready for the board.",
    "Kickoff is planned for Monday.", "The route has been confirmed.", "Preparations are nearly done.",
)  # fmt: skip
KEYWORDS = ("budget", "review", "deadline", "test", "summary", "the", "client", "samples", "results")
TAGS = ("#Progress", "#Milestone", "#RoadTrip", "#TeamWork", "#Planning", "#Insights", "#Update", "#OnTheMove")
HANDLES = ("@nora_fields", "@harbor_news", "@dev_circle", "@lena_k", "@city_desk", "@trail_notes")
ACCOUNTS = ("nora_fields", "harbor_news", "dev_circle", "lena_k", "city_desk", "trail_notes")
PEOPLE = ("Nadia", "Oscar", "Priya", "Quentin", "Rosa", "Stefan", "Tamara", "Ulrich", "Vera", "Walter")
SURNAMES = ("Alvarez", "Brandt", "Castell", "Dorsey", "Ekman", "Farrow", "Galanis", "Hadley")
TITLES = (
    "Projector failure in the lecture hall", "Badge reader offline", "Delayed parts delivery", "Login page times out",
    "Broken heating on floor two", "Missing invoice from March", "Brake inspection request", "Printer queue is stuck",
)  # fmt: skip
RESOLUTIONS = (
    "Replaced the faulty cable.", "Confirmed with the vendor and corrected the entry.", "Restarted the service.",
    "Inspected on site, no further action.", "Parts were reordered and fitted.",
)  # fmt: skip
CITIES = ("Rivermist", "Stonebrook", "Maplecrest", "Silverpine", "Shadowridge", "Sunset Valley", "Oakendale")
ADDRESSES = (
    "12 Harbor Lane, Stonebrook, 74532", "88 Cedar Road, Silverpine, 62947", "5 Mill Street, Oakendale, 47329",
    "301 Summit Avenue, Maplecrest, 56108", "47 Lake Drive, Autumnville, 51479",
)  # fmt: skip

PHRASES: dict[str, Phrase] = {
    "file_name": Phrase("'{}'", "that same file", "one of the files", "The file I have in mind is '{}'."),
    "file_name1": Phrase("'{}'", "that same file", "the first version", "By the first version I am thinking of '{}'."),
    "file_name2": Phrase("'{}'", "that same file", "a second version", "The second version is '{}'."),
    "folder": Phrase("'{}'", "that same folder"),
    "dir_name": Phrase("'{}'", "that same folder", "something particular", "The folder's name is '{}'."),
    "source": Phrase("'{}'", "that same item", "one of the items here", "The item to take is '{}'."),
    "destination": Phrase("'{}'", "that address"),
    "content": Phrase("'{}'", "exactly that result", "something short", "The wording is '{}'."),
    "pattern": Phrase("'{}'", "that", "a certain expression", "The expression is '{}'."),
    "name": Phrase("'{}'", "that", "a certain label", "It goes by '{}'."),
    "lines": Phrase("{}", "that many", "few", "Make it {} of them."),
    "user": Phrase("{}", "that person", "one of my colleagues", "The colleague is {}."),
    "user_name": Phrase("'{}'", "that person", "somebody new", "The newcomer is '{}'."),
    "user_id": Phrase("'{}'", "that very account", "one of the accounts", "The account is '{}'."),
    "receiver_id": Phrase("'{}'", "that person", "one of my contacts", "The contact is '{}'."),
    "message": Phrase("'{}'", "that", "a short note", "The note reads '{}'."),
    "keyword": Phrase("'{}'", "that", "a certain term", "The term is '{}'."),
    "comment_content": Phrase("'{}'", "that", "a few words", "The words are '{}'."),
    "tweet_id": Phrase("post number {}", "that post", "one of the posts", "It is post number {}."),
    "username": Phrase("'{}'", "that account"),
    "username_to_follow": Phrase("'{}'", "that account", "another account", "The account is '{}'."),
    "username_to_unfollow": Phrase("'{}'", "that account", "one of the accounts", "The account is '{}'."),
    "mentioned_usernames": Phrase("'{}'", "those accounts", "a friend", "My friend goes by {}."),
    "ticket_id": Phrase("ticket number {}", "that ticket", "one of the tickets", "It is ticket number {}."),
    "title": Phrase("'{}'", "that"),
    "resolution": Phrase("'{}'", "that"),
    "fuelAmount": Phrase("{} gallons", "exactly that many gallons", "some gallons", "I would like {} gallons."),
    "temperature": Phrase("{} degrees", "that temperature"),
    "distance": Phrase("{} miles", "that distance", "a certain distance", "The distance is {} miles."),
    "cityA": Phrase("zip code {}", "the first of the two places"),
    "cityB": Phrase("zip code {}", "the second of the two places"),
    "city": Phrase("{}", "that town", "a town", "The town is {}."),
    "liter": Phrase("{} liters", "that many liters", "a number of liters", "It is {} liters."),
    "gallon": Phrase("{} gallons", "that many gallons", "a number of gallons", "It is {} gallons."),
    "speed": Phrase("{} miles per hour", "that speed", "a steady speed", "Make it {} miles per hour."),
    "distanceToNextVehicle": Phrase("{} meters", "that distance"),
    "messages": Phrase("'{}'", "those"),
    "numbers": Phrase("{}", "the figures you just obtained", "a few figures", "The figures are {}."),
    "number": Phrase("{}", "that figure", "a figure", "The figure is {}."),
    "value": Phrase("{}", "that figure", "a figure", "The figure is {}."),
    "a": Phrase("{}", "that figure"),
    "b": Phrase("{}", "the figure before it"),
    "part": Phrase("{}", "that figure"),
    "symbol": Phrase("{}", "that stock", "one of the stocks", "The stock is {}."),
    "stock": Phrase("{}", "that stock", "a stock", "The stock is {}."),
    "stocks": Phrase("{}", "those stocks"),
    "price": Phrase("${}", "its current price"),
    "amount": Phrase("{}", "that amount", "some", "Make it {}."),
    "order_id": Phrase("order number {}", "that order", "one of my orders", "It is order number {}."),
    "status": Phrase("{}"),
    "travel_class": Phrase("{}"),
    "base_currency": Phrase("{}"),
    "target_currency": Phrase("{}"),
    "insurance_type": Phrase("{}"),
    "unit_in": Phrase("{}"),
    "unit_out": Phrase("{}"),
    "sector": Phrase("{}", "that sector", "one sector", "The sector is {}."),
    "location": Phrase("{}", "that city", "a city", "The city is {}."),
    "travel_from": Phrase("{}", "the first airport"),
    "travel_to": Phrase("{}", "the second airport"),
    "travel_date": Phrase("{}", "that day", "some day", "The day is {}."),
    "access_token": Phrase("access code '{}'", "the access code from signing in"),
    "card_id": Phrase("card '{}'", "that card"),
    "booking_id": Phrase("booking '{}'", "that booking"),
    "budget_limit": Phrase("${}", "that converted amount", "a new ceiling", "The ceiling is ${}."),
}
PLAIN = Phrase("'{}'", "that")
