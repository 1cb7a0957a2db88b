"""The facts of the small world, in many phrasings.

Every fact is a pair of a prompt and the one right continuation. A prompt here
never occurs in the corpus with another continuation, so that greedy decoding
has a right answer; freedom of choice lives in the stories instead.
"""

import random

from corpus_grammar import capital, expand
from corpus_words import DAYS

CAPITALS = dict(pair.split(":") for pair in (
    "France:Paris,Germany:Berlin,Italy:Rome,Spain:Madrid,England:London,Ireland:Dublin,"
    "Portugal:Lisbon,Greece:Athens,Poland:Warsaw,Austria:Vienna,Hungary:Budapest,Norway:Oslo,"
    "Sweden:Stockholm,Finland:Helsinki,Denmark:Copenhagen,Belgium:Brussels,Russia:Moscow,"
    "Turkey:Ankara,Egypt:Cairo,Kenya:Nairobi,India:New Delhi,Japan:Tokyo,China:Beijing,"
    "Canada:Ottawa,Cuba:Havana,Peru:Lima,Chile:Santiago,Brazil:Brasilia,Australia:Canberra,"
    "the United States:Washington"
).split(","))
COLOURS = dict(pair.split(":") for pair in (
    "grass:green,the sky:blue,the sea:blue,the sun:yellow,snow:white,milk:white,coal:black,"
    "the night:black,blood:red,chocolate:brown,a banana:yellow,a lemon:yellow,"
    "a strawberry:red,a tomato:red,a cherry:red,a frog:green,a leaf:green,a carrot:orange,"
    "a pumpkin:orange,a pig:pink,a crow:black,a swan:white,an elephant:grey,a bear:brown"
).split(","))
SOUNDS = dict(pair.split(":") for pair in (
    "cow:moo,dog:woof,cat:meow,duck:quack,sheep:baa,pig:oink,horse:neigh,lion:roar,"
    "frog:croak,bee:buzz,owl:hoot,mouse:squeak,bird:tweet,snake:hiss,hen:cluck,wolf:howl"
).split(","))
YOUNG = dict(pair.split(":") for pair in (
    "dog:puppy,cat:kitten,cow:calf,horse:foal,sheep:lamb,pig:piglet,duck:duckling,hen:chick,"
    "lion:cub,bear:cub,frog:tadpole,goat:kid,deer:fawn,kangaroo:joey"
).split(","))
HOMES = dict(pair.split(":") for pair in (
    "bird:nest,bee:hive,spider:web,fox:den,rabbit:burrow,horse:stable,dog:kennel,bear:cave,"
    "king:castle,snail:shell"
).split(","))
EATS = dict(pair.split(":") for pair in (
    "cows:grass,rabbits:carrots,monkeys:bananas,mice:cheese,bears:honey,pandas:bamboo,"
    "squirrels:nuts,horses:hay,cats:fish,dogs:bones"
).split(","))
OPPOSITES = dict(pair.split(":") for pair in (
    "big:small,hot:cold,up:down,happy:sad,fast:slow,old:new,day:night,good:bad,"
    "long:short,light:dark,open:closed,full:empty,wet:dry,left:right,black:white,"
    "hard:soft,loud:quiet,strong:weak,rich:poor,first:last"
).split(","))
JOBS = dict(pair.split(":") for pair in (
    "bakes bread:baker,grows food:farmer,teaches children:teacher,flies planes:pilot,"
    "helps sick people:doctor,paints pictures:painter,sings songs:singer,writes books:writer,"
    "builds houses:builder,sails ships:sailor"
).split(","))
MONTHS = (
    "January February March April May June July August September October November December"
).split()
SEASONS = "spring summer autumn winter".split()
COUNTS = {
    "A week has": "seven days", "A year has": "twelve months", "A spider has": "eight legs",
    "A dog has": "four legs", "A bird has": "two wings", "A triangle has": "three sides",
    "A square has": "four sides", "A hand has": "five fingers", "A day has": "24 hours",
    "An ant has": "six legs",
}


def _table_facts():
    """Return (kind, prompt, answer, phrasings) for the tables above."""
    rows = []
    for land, city in CAPITALS.items():
        rows.append(("city", f"{city} is a city in", land, [
            f"Where is {city}? {city} is a city in {land}.",
            f"{city} is a {{big|famous|beautiful|busy}} city in {land}."]))
        rows.append(("capital", f"The capital of {land} is", city, [
            f"What is the capital of {land}? The capital of {land} is {city}.",
            f"{city} is the capital of {land}.",
            f"{capital(land)} is a country. The capital of {land} is {city}.",
            f"{{If you go to|When you visit|In}} {land}, you can see {city}, the capital."]))
    for thing, colour in COLOURS.items():
        rows.append(("colour", f"The colour of {thing} is", colour, [
            f"What colour is {thing}? {capital(thing)} is {colour}.",
            f"{capital(thing)} is {colour}."]))
    for animal, sound in SOUNDS.items():
        rows.append(("sound", f"The {animal} says", sound, [
            f"What does the {animal} say? The {animal} says {sound}.",
            f"{capital(sound)}, {sound}, says the {animal}."]))
    for animal, young in YOUNG.items():
        rows.append(("young", f"A baby {animal} is called a", young, [
            f"What is a baby {animal} called? A baby {animal} is called a {young}.",
            f"A {young} is a baby {animal}." if young != "cub" else ""]))
    for animal, home in HOMES.items():
        rows.append(("home", f"A {animal} lives in a", home, [
            f"Where does a {animal} live? A {animal} lives in a {home}.",
            f"The home of a {animal} is a {home}."]))
    for animal, food in EATS.items():
        rows.append(("food", f"{capital(animal)} like to eat", food, [
            f"What do {animal} eat? {capital(animal)} like to eat {food}."]))
    for word, other in OPPOSITES.items():
        rows.append(("opposite", f"The opposite of {word} is", other, [
            f"What is the opposite of {word}? The opposite of {word} is {other}.",
            f"The opposite of {other} is {word}."]))
    for deed, job in JOBS.items():
        rows.append(("job", f"A person who {deed} is called a", job, [
            f"Who {deed}? A {job} {deed}.", f"A {job} is a person who {deed}."]))
    for start, rest in COUNTS.items():
        rows.append(("count", start, rest, []))
    return rows


def _order_facts():
    """Return the facts about what comes after and before what."""
    rows = []
    for name, items in (("day", DAYS), ("month", MONTHS), ("season", SEASONS)):
        for i, item in enumerate(items):
            after = items[(i + 1) % len(items)]
            rows.append(("order", f"The {name} after {item} is", after, [
                f"Which {name} comes after {item}? {capital(after)} comes after {item}.",
                f"After {item} comes {after}."]))
            rows.append(("order", f"The {name} before {after} is", item, [
                f"Before {after} comes {item}."]))
    for i in range(20):
        rows.append(("order", f"The number after {i} is", str(i + 1), [
            f"After {i} comes {i + 1}."]))
    return rows


def _sum_facts():
    """Return the facts about adding up to ten and ten, and taking away."""
    rows = []
    for a in range(11):
        for b in range(11):
            rows.append(("sum", f"{a} plus {b} is", str(a + b), [
                f"What is {a} plus {b}? {a} plus {b} is {a + b}."]))
            if b <= a:
                rows.append(("sum", f"{a} minus {b} is", str(a - b), [
                    f"What is {a} minus {b}? {a} minus {b} is {a - b}."]))
    return rows


def all_facts():
    """Return every fact as a tuple ``(kind, prompt, answer, phrasings)``."""
    return _table_facts() + _order_facts() + _sum_facts()


FACTS = all_facts()
_BY_KIND = {}
for _fact in FACTS:
    _BY_KIND.setdefault(_fact[0], []).append(_fact)
# There are many more sums than other facts; each kind gets about its share.
_KIND_WEIGHTS = {
    "capital": 5, "city": 3, "colour": 3, "sound": 2, "young": 2, "home": 1, "food": 1,
    "opposite": 2, "job": 1, "count": 1, "order": 8, "sum": 14,
}


def say_fact(rng, fact):
    """Return one sentence (or question and answer) that states a fact."""
    _, prompt, answer, phrasings = fact
    if phrasings and rng.random() < 0.45:
        text = expand(rng, rng.choice(phrasings))
        if text:
            return text
    return f"{prompt} {answer}."


def fact_document(rng):
    """Write a short document of facts.

    Most hold one fact only, so that greedy decoding ends after it; some hold
    a few of one kind, and some are mixed. None says a fact twice, which would
    teach the model to go round in circles.
    """
    kinds = list(_KIND_WEIGHTS)
    draw = rng.random()
    count = 1 if draw < 0.65 else rng.randint(2, 8)
    kind = rng.choices(kinds, list(_KIND_WEIGHTS.values()))[0]
    chosen = []
    for _ in range(count):
        if draw > 0.85:
            kind = rng.choices(kinds, list(_KIND_WEIGHTS.values()))[0]
        fact = rng.choice(_BY_KIND[kind])
        if fact not in chosen:
            chosen.append(fact)
    separator = "\n" if rng.random() < 0.3 else " "
    return separator.join(say_fact(rng, fact) for fact in chosen)


def list_document(rng):
    """Write one of the well-known lists in order: days, months, numbers."""
    start = rng.randint(0, 8)
    numbers = ", ".join(str(n) for n in range(start, start + rng.randint(4, 12)))
    return rng.choice([
        "The days of the week are " + ", ".join(DAYS[:-1]) + " and " + DAYS[-1] + ".",
        "The months of the year are " + ", ".join(MONTHS[:-1]) + " and " + MONTHS[-1] + ".",
        "The four seasons are spring, summer, autumn and winter.",
        f"{numbers}.",
        "Let us count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10.",
    ])


def question_and_answer(rng):
    """Return a question about a fact and its answer, for dialogues."""
    while True:
        fact = rng.choice(_BY_KIND[rng.choice(list(_KIND_WEIGHTS))])
        for text in fact[3]:
            question, mark, answer = text.partition("? ")
            if mark and "{" not in text:
                return question + "?", answer


def fact_checks():
    """Return what `facts.json` holds: prompts and their one right answer."""
    return [
        {"kind": kind, "prompt": prompt, "expected": " " + answer}
        for kind, prompt, answer, _ in FACTS
    ]


if __name__ == "__main__":
    for _ in range(10):
        print(fact_document(random.Random(_)), "\n")
