"""The words of the small world: who lives in it, where, and with what."""

from corpus_grammar import ranked_choice

GIRLS = (
    "Lily Mia Anna Emma Lucy Sara Rosa Ella Nina Zoe Ruby Clara Maya Ivy Eva Sophie "
    "Alice Lena Nora Julia Amy Grace Hannah Molly Daisy Kate Leila Olga Tara Yuki"
).split()
BOYS = (
    "Tom Ben Max Sam Leo Jack Tim Finn Noah Oscar Peter Adam Hugo Luke David Paul "
    "Omar Felix Jonas Charlie Henry Oliver Daniel Toby Simon Ravi Kenji Ivan Pablo Marco"
).split()
# Animals get names of their own, so that a reader knows who is who.
ANIMAL_NAMES = (
    "Pip Momo Bella Rusty Coco Fluffy Biscuit Pepper Nibbles Sunny Hazel Bruno Poppy "
    "Bubbles Shadow Spot Button Maple"
).split()
ANIMAL_HEROES = (
    "rabbit mouse fox bear squirrel duck frog owl hedgehog puppy kitten lamb elephant "
    "monkey turtle penguin dragon goat"
).split()

TRAITS = "little small young kind clever shy brave happy cheerful quiet curious gentle".split()
COLOURS = "red blue green yellow white black brown pink orange purple".split()

HOBBIES = [
    "draw", "sing", "dance", "read books", "climb trees", "look at the stars", "bake cakes",
    "paint", "swim", "build towers", "tell jokes", "plant flowers", "play in the rain",
    "ask questions", "run in the grass", "collect stones", "make music", "watch the birds",
    "play hide and seek", "help people",
]

PLACES = [
    "park", "garden", "forest", "beach", "river", "farm", "market", "playground", "lake",
    "hill", "meadow", "pond", "village", "school", "library",
]

# Things and what one does with them.
THINGS = {
    "ball": "kick", "kite": "fly", "book": "read", "drum": "play", "doll": "hug",
    "boat": "sail", "hat": "wear", "car": "push", "scarf": "wear", "bell": "ring",
    "box": "open", "teddy bear": "hug", "whistle": "blow", "bag": "carry", "cup": "fill",
    "key": "hold", "train": "push", "blanket": "hug", "umbrella": "open", "pencil": "hold",
}

FOODS = [
    "apple", "cake", "cookie", "pear", "sandwich", "pie", "banana", "pancake", "muffin",
    "orange", "carrot", "peach",
]
FRUITS = ["apples", "pears", "cookies", "shells", "stones", "eggs", "flowers", "books", "nuts"]

HIDING = [
    "under a bush", "behind the well", "in the tall grass", "under a big leaf",
    "behind an old tree", "in a basket", "next to the pond", "under the bench",
    "behind a big rock", "under a pile of leaves", "in the hay", "on top of the wall",
]

WEATHER = ["sunny", "warm", "cold", "windy", "bright", "quiet", "cloudy", "fine"]
ELDERS = {
    "mum": "she", "dad": "he", "grandma": "she", "grandpa": "he", "aunt": "she", "uncle": "he",
}
JOBS = [
    "a baker", "a teacher", "a doctor", "a farmer", "a nurse", "a painter", "a gardener",
    "a driver", "a cook", "a builder", "a singer", "a writer", "a sailor", "a pilot",
]
HOMES = [
    "in a small house near the river", "in a big city", "in a little village", "on a farm",
    "near the sea", "in a tall house with a red door", "next to a forest", "by a quiet lake",
    "at the foot of a hill", "in a small town", "above a bakery", "near the park",
]

_PRONOUNS = {
    "she": ("she", "her", "her", "herself"),
    "he": ("he", "him", "his", "himself"),
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve".split()
)


def person_slots(rng, prefix, taken):
    """Invent a person or a named animal.

    Parameters
    ----------
    rng : random.Random
        Source of every choice.
    prefix : str
        Put before each slot name, so that a text can have several people.
    taken : set of str
        Names that this text uses already; the new name is added.

    Returns
    -------
    dict of str
        Slots for the name, the kind and the pronouns.
    """
    female = rng.random() < 0.5
    if rng.random() < 0.65:
        names, kind = (GIRLS, "girl") if female else (BOYS, "boy")
    else:
        names, kind = ANIMAL_NAMES, rng.choice(ANIMAL_HEROES)
    name = ranked_choice(rng, [item for item in names if item not in taken])
    taken.add(name)
    he, him, his, self_ = _PRONOUNS["she" if female else "he"]
    return {
        prefix + "n": name, prefix + "kind": kind, prefix + "he": he, prefix + "him": him,
        prefix + "his": his, prefix + "himself": self_,
    }


def story_slots(rng):
    """Choose the people and things of one story; they stay the same throughout.

    The hero has slots without a prefix, the friend slots that start with
    ``f``, and the elder (a parent or another grown-up) slots with ``e``.
    """
    taken = set()
    slots = person_slots(rng, "", taken)
    slots.update(person_slots(rng, "f", taken))
    noun = rng.choice(list(THINGS))
    colour = rng.choice(COLOURS)
    place, place2 = rng.sample(PLACES, 2)
    elder = rng.choice(list(ELDERS))
    animal = rng.choice("bird cat dog rabbit duck hedgehog squirrel butterfly".split())
    slots.update(
        noun=noun, colour=colour, thing=f"{colour} {noun}", use=THINGS[noun],
        place=place, place2=place2, elder=elder, ehe=ELDERS[elder],
        ehis=_PRONOUNS[ELDERS[elder]][2], food=rng.choice(FOODS), animal=animal,
        hiding=rng.choice(HIDING), trait=rng.choice(TRAITS), weather=rng.choice(WEATHER),
        hobby=rng.choice(HOBBIES), home=rng.choice(HOMES),
        many=rng.choice(NUMBER_WORDS[2:8]), day=rng.choice(DAYS),
    )
    return slots
