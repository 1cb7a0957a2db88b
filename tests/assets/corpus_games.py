"""Memory games: short texts in which names and words must be kept in mind.

Who is who in a story is hard for a tiny model. These texts ask for it often
and plainly: a name or word that comes later was always said before.
"""

# ruff: noqa: E501

from corpus_grammar import expand, ranked_choice
from corpus_words import (
    ANIMAL_NAMES,
    BOYS,
    COLOURS,
    FOODS,
    GIRLS,
    HOBBIES,
    PLACES,
    THINGS,
)

_NAMES = GIRLS + BOYS + ANIMAL_NAMES
_WORDS = _NAMES + COLOURS + PLACES + FOODS + [thing for thing in THINGS if " " not in thing]


def repeat_game(rng):
    """Write a list of words that is said again, in the same order."""
    words = rng.sample(_WORDS, rng.randint(3, 12))
    separator = rng.choice([", ", ", ", " and ", " "])
    line = separator.join(words) + "."
    opening = rng.choice(["Repeat after me: ", "Say it again: ", "", "Remember this: "])
    return opening + " ".join([line] * rng.randint(2, 4))


def who_has_what(rng):
    """Write who has what or likes what, and then ask for it."""
    names = rng.sample(_NAMES, rng.randint(2, 4))
    if rng.random() < 0.6:
        verb = rng.choice(["has", "wants", "found"])
        things = [f"a {rng.choice(COLOURS)} {noun}" for noun in rng.sample(list(THINGS), len(names))]
    else:
        verb = "likes to"
        things = rng.sample(HOBBIES, len(names))
    pairs = list(zip(names, things, strict=True))
    said = [f"{name} {verb} {thing}." for name, thing in pairs]
    asked = []
    for name, thing in rng.sample(pairs, rng.randint(1, len(pairs))):
        asked.append(rng.choice([
            f"Who {verb} {thing}? {name} {verb} {thing}.",
            f"{name} {verb} {thing}.", f"Yes, {name} {verb} {thing}."]))
    return expand(rng, " ".join(said + asked))


_SCENE = [
    "[a] met [b] {at|near} the [place].", "[a] smiled at [b].", "[a] gave [b] the [noun].",
    "\"{Hello|Good morning}, [b],\" said [a].", "[a] and [b] laughed.", "[a] sat down, and [b] sat down, too.",
    "\"{Where is|What do you think of} the [noun], [b]?\" asked [a].", "[b] looked at [a].",
    "[a] ran, and [b] ran after [a].", "\"Thank you, [a],\" said [b].", "[b] waited for [a].",
    "\"{I like|I see} the [noun],\" said [a]. \"I {like|see} it, too,\" said [b].", "[a] went home with [b].",
]


def two_friends(rng):
    """Write a scene in which nearly every sentence names the same two."""
    first = ranked_choice(rng, _NAMES)
    second = rng.choice([name for name in _NAMES if name != first])
    noun, place = rng.choice(list(THINGS)), rng.choice(PLACES)
    opening = rng.choice([
        f"{first} and {second} are friends.", f"This is {first}, and that is {second}.",
        f"{first} had a {noun}. {second} was there, too.",
        f"There were two friends named {first} and {second}."])
    sentences = [expand(rng, opening)]
    for template in rng.sample(_SCENE, rng.randint(4, 9)):
        one, other = (first, second) if rng.random() < 0.5 else (second, first)
        sentences.append(expand(
            rng, template, {"a": one, "b": other, "noun": noun, "place": place}))
    return " ".join(sentences)


def memory_game(rng):
    """Write one memory game."""
    return rng.choice([repeat_game, who_has_what, two_friends, two_friends])(rng)
